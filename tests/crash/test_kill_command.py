"""SIGKILL for the sandboxed process itself: the command of a tool call, and the criterion. The agent is
told; nothing is repeated unasked, lost or counted twice."""

import asyncio
import os
import signal
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.client import Client

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.integration.conftest import BROKEN, FIXED, TEST, Handle
from tests.integration.test_cancel_reset import processes
from tests.scripted import call, turn, write_script

from .conftest import WorkerProcess, address, client, data_dir, worker_process
from .test_kill_worker import committed, events, work

__all__ = ["address", "client", "data_dir", "worker_process"]

ENDED = "ended by signal 9"


def shells(command: str) -> list[int]:
    """The shells that run just this command: payloads, not what launches them."""
    found = []
    for pid in processes(command):
        with suppress(OSError):  # it has ended
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if arguments[1:3] == [b"-c", command.encode()]:
                found.append(pid)
    return found


async def kill(command: str) -> None:
    """Wait until the command runs, and kill it."""
    async with asyncio.timeout(90):
        while not (pids := shells(command)):
            await asyncio.sleep(0.05)
    os.kill(pids[0], signal.SIGKILL)


@pytest.mark.timeout(240)
async def test_the_command_and_the_criterion_are_killed_once_each(
    client: Client, worker_process: WorkerProcess, data_dir: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "calc.py").write_text(BROKEN)
    (source / "test_calc.py").write_text(TEST)
    (source / ".gitignore").write_text("__pycache__/\n")
    mark = uuid.uuid4().hex
    tool = f"echo ran >> ran.txt; sleep 60; echo {mark}"
    criterion = f"sleep 5; python -m unittest -q test_calc && echo {mark}"
    script = write_script(
        tmp_path / "script.yaml",
        turn(
            call(
                "run_command",
                command=tool,
                fails=True,
                shows=(ENDED,),
            )
        ),
        turn(call("run_command", command="cat ran.txt", shows=("ran",))),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="done", fails=True, shows=(ENDED,))),
        turn(call("finish", summary="done")),
    )
    contract = TaskContract.model_validate(
        {
            "goal": "Make add right.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {
                "kind": "command",
                "run": criterion,
            },
            "policy": "unattended",
            "model": {"provider": "replay", "name": "script", "base_url": script},
        }
    )
    run: Handle = await client.start_workflow(
        AgentRun.run,
        contract.model_dump(mode="json"),
        id=f"kill-{uuid.uuid4().hex[:8]}",
        task_queue=worker_process.task_queue,
    )
    await kill(tool)
    await kill(criterion)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert (source / "calc.py").read_text() == FIXED
    assert (source / "ran.txt").read_text() == "ran\n"
    assert len(work(data_dir, result)) == 2
    assert (result.spend.steps, result.spend.tool_calls) == (5, 5)
    done = committed(await events(run))
    assert {name: done[name] for name in ("complete", "use_tool", "verify", "land")} == {
        "complete": 5, "use_tool": 3, "verify": 2, "land": 1,
    }  # fmt: skip
