"""A worker killed in the middle of a call: what happens next is the tool's retry class."""

import asyncio
import sys
import uuid
from pathlib import Path

import pytest
from temporalio.client import Client

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.crash.conftest import WorkerProcess, worker_process
from tests.integration.conftest import Handle
from tests.integration.test_approvals import decide, pending
from tests.scripted import call, turn, write_script

__all__ = ["worker_process"]

pytestmark = pytest.mark.timeout(240)

HERE = Path(__file__).parent


async def start(
    client: Client, worker: WorkerProcess, tmp_path: Path, tool: str, log: Path, *, fails: bool
) -> Handle:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    script = write_script(
        tmp_path / "script.yaml",
        turn(call(f"mcp__h__{tool}", log=str(log), seconds=3, fails=fails)),
        turn(call("finish", summary="done")),
    )
    contract = TaskContract.model_validate(
        {
            "goal": "g",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "none"},
            "policy": "unattended",
            "model": {"provider": "replay", "name": "s", "base_url": script},
            "mcp_servers": [
                {
                    "kind": "stdio",
                    "id": "h",
                    "command": sys.executable,
                    "args": [str(HERE / "hostile.py")],
                    "read": [str(HERE)],
                    "write": [str(log.parent)],
                }
            ],
        }
    )
    return await client.start_workflow(
        AgentRun.run,
        contract.model_dump(mode="json"),
        id=f"mcp-kill-{uuid.uuid4().hex[:8]}",
        task_queue=worker.task_queue,
    )


async def begun(log: Path) -> None:
    async with asyncio.timeout(90):
        while not log.exists():
            await asyncio.sleep(0.05)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "effects"
    folder.mkdir()
    return folder / "log.txt"


@pytest.mark.parametrize("tool", ["peek", "again"])
async def test_a_reading_or_idempotent_call_is_made_again(
    client: Client, worker_process: WorkerProcess, tmp_path: Path, log: Path, tool: str
) -> None:
    run = await start(client, worker_process, tmp_path, tool, log, fails=False)
    await begun(log)
    await worker_process.again()
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert log.read_text() == f"{tool}\n" * 2


@pytest.mark.parametrize(("verdict", "times"), [("skip", 1), ("retry", 2)])
async def test_an_unrepeatable_call_is_not_repeated_unless_a_human_says_so(
    client: Client,
    worker_process: WorkerProcess,
    tmp_path: Path,
    log: Path,
    verdict: str,
    times: int,
) -> None:
    run = await start(client, worker_process, tmp_path, "once", log, fails=verdict == "skip")
    await begun(log)
    await worker_process.again()
    (asked,) = await pending(run)
    assert asked.request.act == "retry"
    assert log.read_text() == "once\n"
    await decide(run, asked.id, verdict)
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert log.read_text() == "once\n" * times
