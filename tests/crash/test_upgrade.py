"""A run in flight is taken up by a worker of a later release, whose models have new fields."""

import asyncio
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.integration.conftest import FIXED, Handle

from .scene import Scene, Worker, contract
from .servers import ServerProcess, connected
from .victim import Moment


class NewerWorker:
    def __init__(self, address: str, data_dir: Path, task_queue: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.newer", address, str(data_dir), task_queue]
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    server = ServerProcess(tmp_path / "server")
    server.start()
    yield server
    server.kill()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "moment",
    [
        Moment("complete", 2, "before"),
        Moment("use_tool", 3, "before"),
        Moment("verify", 1, "before"),
    ],
    ids=str,
)
async def test_a_later_release_goes_on_with_a_run_and_repeats_its_lost_call(
    moment: Moment, server: ServerProcess, tmp_path: Path
) -> None:
    """The call that the old worker took with it is repeated as the old one scheduled it; the run has
    been continued as new by the old one, too."""
    client = await connected(server.address, tmp_path / "data")
    queue = f"upgrade-{uuid.uuid4().hex[:6]}"
    given = TaskContract.model_validate(contract(tmp_path)).model_dump(mode="json")
    run: Handle = await client.start_workflow(
        "AgentRun", given, id=queue, task_queue=queue, result_type=RunResult
    )
    old = Worker(server.address, tmp_path / "data", queue)
    scene = Scene(client, server, tmp_path / "data", tmp_path, run, old)
    old.start(moment)
    around = asyncio.create_task(scene.approve())
    await old.ended()
    new = NewerWorker(server.address, tmp_path / "data", queue)
    try:
        result = await run.result()
    finally:
        around.cancel()
        new.kill()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert (tmp_path / "source" / "calc.py").read_text() == FIXED
