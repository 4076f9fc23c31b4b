"""Single activities of the harness in a user's own worker and workflow."""

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.service import GrpcCompression
from temporalio.worker import Worker

from examples.one_piece.workflow import Regenerate
from io_harness.activities.settings import Settings
from io_harness.plugin import harness_activities
from io_harness.workflows.contract import (
    CommandCheck,
    DirectorySource,
    Limits,
    SandboxSpec,
)
from io_harness.workflows.pieces import HeldCommand, HeldResult, WorkToVerify
from io_harness.workflows.result import VerificationReport

from .piece_workflows import OneCheck, OneCommand

GENERATE = """\
import pathlib, sys
pathlib.Path("answer.py").write_text("ANSWER = 42\\n")
pathlib.Path({place!r}).write_text("made")
sys.exit({code})
"""
TEST = """\
import unittest
from answer import ANSWER

class Test(unittest.TestCase):
    def test(self):
        self.assertEqual(ANSWER, 42)
"""


@pytest.fixture(scope="module")
async def plain(address: str) -> Client:
    """A client without the plugin."""
    return await Client.connect(
        address, data_converter=pydantic_data_converter, grpc_compression=GrpcCompression.NONE
    )


@pytest.fixture(scope="module")
async def queue(plain: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    name = f"pieces-{uuid.uuid4().hex[:8]}"
    settings = Settings(data_dir=tmp_path_factory.mktemp("pieces"))
    async with Worker(
        plain,
        task_queue=name,
        workflows=[OneCommand, OneCheck, Regenerate],
        activities=harness_activities(settings),
        max_heartbeat_throttle_interval=timedelta(seconds=1),
    ):
        yield name
    assert list((settings.data_dir / "runs").iterdir()) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_answer.py").write_text(TEST)
    return project


async def held(plain: Client, queue: str, command: HeldCommand) -> HeldResult:
    return await plain.execute_workflow(
        OneCommand.run, command, id=f"held-{uuid.uuid4().hex[:8]}", task_queue=queue
    )


async def checked(plain: Client, queue: str, work: WorkToVerify) -> VerificationReport:
    return await plain.execute_workflow(
        OneCheck.run, work, id=f"check-{uuid.uuid4().hex[:8]}", task_queue=queue
    )


def failure_code(error: WorkflowFailureError) -> str | None:
    assert isinstance(error.cause, ActivityError)
    assert isinstance(error.cause.cause, ApplicationError)
    return error.cause.cause.type


async def test_the_example(plain: Client, queue: str, project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    (project / "generate.py").write_text(GENERATE.format(place=str(project / "inside.txt"), code=0))
    run = {"task_queue": queue, "id": f"regenerate-{uuid.uuid4().hex[:8]}"}
    assert await plain.execute_workflow(Regenerate.run, str(project), **run) == "passed"  # type: ignore[call-overload]
    assert (project / "inside.txt").exists()
    (project / "generate.py").write_text(GENERATE.format(place=str(outside), code=1))
    with pytest.raises(WorkflowFailureError) as caught:
        await plain.execute_workflow(Regenerate.run, str(project), **run)  # type: ignore[call-overload]
    assert "the generator failed" in str(caught.value.cause)
    assert not outside.exists()


async def test_how_a_command_ends_is_told(plain: Client, queue: str, project: Path) -> None:
    command = HeldCommand(run="echo out; echo err >&2; exit 3", directory=str(project))
    ended = await held(plain, queue, command)
    assert (ended.cause, ended.exit_code, ended.ok) == ("exited", 3, False)
    assert ended.output == "out\nerr\n"
    assert ended.isolation.levels["fs_write"] == "enforced"
    slow = HeldCommand(
        run=("sleep", "30"),
        directory=str(project),
        sandbox=SandboxSpec(limits=Limits(wall_seconds=1)),
    )
    assert (await held(plain, queue, slow)).cause == "wall"


async def test_long_output_is_kept_at_both_ends(plain: Client, queue: str, project: Path) -> None:
    command = HeldCommand(
        run="echo first; seq 100000; echo last", directory=str(project), output_bytes=1_000
    )
    output = (await held(plain, queue, command)).output
    assert output.startswith("first\n")
    assert output.endswith("last\n")
    assert "bytes omitted" in output
    assert len(output) < 1_200


async def test_a_read_only_command_changes_nothing(
    plain: Client, queue: str, project: Path
) -> None:
    write = HeldCommand(run="touch new", directory=str(project))
    looked = await held(plain, queue, write.model_copy(update={"mode": "read_only"}))
    assert not looked.ok
    assert not (project / "new").exists()
    assert (await held(plain, queue, write)).ok  # the control
    assert (project / "new").exists()


async def test_what_can_t_be_done_fails_with_a_code(
    plain: Client, queue: str, project: Path, tmp_path: Path
) -> None:
    for command, code in (
        (HeldCommand(run="true", directory=str(tmp_path / "nowhere")), "SourceNotFound"),
        (HeldCommand(run="true", directory=str(project), hosts=("a b",)), "InvalidHost"),
    ):
        with pytest.raises(WorkflowFailureError) as caught:
            await held(plain, queue, command)
        assert failure_code(caught.value) == code


async def test_protected_paths_are_taken_from_the_base(
    plain: Client, queue: str, project: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "answer.py").write_text("ANSWER = 41\n")
    (work / "test_answer.py").write_text(TEST.replace("42", "41"))  # made to pass
    check = CommandCheck(run="python -m unittest -q", protect=("test_answer.py",))
    alone = WorkToVerify(work=DirectorySource(path=str(work)), verification=check)
    assert (await checked(plain, queue, alone)).verdict == "passed"
    against = alone.model_copy(update={"base": DirectorySource(path=str(project))})
    report = await checked(plain, queue, against)
    assert report.verdict == "failed"
    assert "41 != 42" in report.checks[0].detail
