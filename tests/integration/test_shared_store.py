"""Two hosts that share their snapshots through a git repository, each with a data directory of its
own; and commands on a queue that only one of them serves."""

import asyncio
import hashlib
import os
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import GrpcCompression

from io_harness.activities.settings import Settings
from io_harness.activities.shared_store import SharedSnapshotStore
from io_harness.plugin import HarnessPlugin, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.result import Outcome
from tests.scripted import call, turn

from .conftest import FIXED, Handle, Repo, Start
from .mcp.test_runs import hostile

LONG = "".join(f"{n}\n" for n in range(1, 20_001))
LONG_HANDLE = f"out-{hashlib.sha256(LONG.encode()).hexdigest()[:16]}"
"""Of an output that is cut: the names of kept outputs are of their content."""


@dataclass(frozen=True)
class Host:
    """A worker's host: nothing is on its disk but its own."""

    address: str
    data_dir: Path
    shared: Path | None

    @asynccontextmanager
    async def serving(self, task_queue: str) -> AsyncIterator[None]:
        settings = Settings(
            data_dir=self.data_dir, shared_store=str(self.shared) if self.shared else None
        )
        client = await Client.connect(
            self.address,
            plugins=[HarnessPlugin(settings)],
            grpc_compression=GrpcCompression.NONE,
        )
        async with harness_worker(client, task_queue=task_queue):
            yield


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "shared.git"
    subprocess.run(["git", "init", "-q", "--bare", path], check=True)
    return path


def refs_of(repository: Path) -> list[str]:
    listed = ["git", "for-each-ref", "--format=%(refname) %(objectname)"]
    done = subprocess.run(listed, cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


async def asks(run: Handle) -> str:
    while not (pending := await run.query(AgentRun.pending_approvals)):
        await asyncio.sleep(0.1)
    return pending[0].id


async def begun_here_and_ended_there(start: Start, hosts: tuple[Host, Host], queue: str) -> Handle:
    """The first edit is made on one host, all after it on the other."""
    here, there = hosts
    async with here.serving(queue):
        run = await start(
            turn(call("write_file", path="note.txt", content="from here\n")),
            turn(call("run_command", command="seq 20000", shows=(LONG_HANDLE,))),
            turn(call("mcp__h__ok", shows=("ok {}",))),
            turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
            turn(call("run_command", command="cat note.txt", shows=("from here",))),
            turn(call("read_output", handle=LONG_HANDLE, offset=-30, shows=("\n20000\n",))),
            turn(call("mcp__h__ok", shows=("connected to anew", "ok {}"))),
            turn(call("job_output", job="job-aaaaaa-1", fails=True, shows=("another worker",))),
            turn(call("finish", summary="done")),
            task_queue=queue,
            mcp_servers=[hostile()],
            policy={
                "preset": "unattended",
                "layers": [
                    {
                        "name": "asks",
                        "rules": [{"effect": "ask", "act": "write", "target": "calc.py"}],
                    }
                ],
            },
        )
        request = await asks(run)
    async with there.serving(queue):
        await run.signal(AgentRun.decide, Decision(request=request, verdict="approve"))
        await run.result()
    return run


def made(address: str, folder: Path, shared: Path | None) -> tuple[Host, Host]:
    return Host(address, folder / "here", shared), Host(address, folder / "there", shared)


async def test_another_host_goes_on_with_a_run(
    start: Start, address: str, repo: Repo, tmp_path: Path, bare: Path
) -> None:
    queue = f"shared-{uuid.uuid4().hex[:6]}"
    hosts = made(address, tmp_path, bare)
    run = await begun_here_and_ended_there(start, hosts, queue)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert repo.read("note.txt") == "from here\n"
    assert f"{result.ref} {result.head}" in refs_of(bare)


async def test_without_it_the_other_host_says_what_it_lacks(
    start: Start, address: str, tmp_path: Path
) -> None:
    """The control: hosts that share nothing."""
    queue = f"apart-{uuid.uuid4().hex[:6]}"
    run = await begun_here_and_ended_there(start, made(address, tmp_path, None), queue)
    result = await run.result()
    assert (result.outcome, result.code) == (Outcome.ESCALATED, "UnknownSnapshot")


async def test_a_shared_store_that_is_not_there(start: Start, address: str, tmp_path: Path) -> None:
    queue = f"gone-{uuid.uuid4().hex[:6]}"
    host = Host(address, tmp_path / "here", tmp_path / "no.git")
    async with host.serving(queue):
        run = await start(turn(call("finish", summary="done")), task_queue=queue)
        with pytest.raises(WorkflowFailureError) as caught:
            await run.result()
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "SnapshotsUnreachable"
    assert "no.git" in cause.message


async def test_commands_go_to_the_hosts_of_their_own_queue(
    start: Start, address: str, repo: Repo, tmp_path: Path, bare: Path
) -> None:
    """Model calls on one host, everything that touches files on another."""
    queue, tools = (f"{kind}-{uuid.uuid4().hex[:6]}" for kind in ("models", "tools"))
    models, hands = made(address, tmp_path, bare)
    async with models.serving(queue), hands.serving(tools):
        run = await start(
            turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
            turn(call("finish", summary="done")),
            task_queue=queue,
            sandbox={"task_queue": tools},
        )
        result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert os.listdir(hands.data_dir / "snapshots.git" / "refs" / "io-harness")
    assert not (models.data_dir / "runs").exists()


async def test_a_blob_that_only_a_message_names_reaches_the_other_host(
    tmp_path: Path, bare: Path
) -> None:
    here = SharedSnapshotStore(tmp_path / "here", str(bare))
    await here.ready()
    blob = await here.put_blob(b"a picture")
    await here.keep_blobs("run-1", [blob])
    await here.give("run-1")
    there = SharedSnapshotStore(tmp_path / "there", str(bare))
    assert await there.get_blob(blob) == b"a picture"


async def test_what_is_collected_on_a_host_goes_from_the_shared_repository(
    tmp_path: Path, bare: Path
) -> None:
    store = SharedSnapshotStore(tmp_path / "here", str(bare))
    await store.ready()
    blob = await store.put_blob(b"x")
    for key in ("old", "new"):
        await store.keep_blobs(key, [blob])
        await store.give(key)
    await store.drop(["old"])
    assert refs_of(bare) == [f"refs/io-harness/new/blob-{blob} {blob}"]
