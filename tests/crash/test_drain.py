"""SIGTERM for a worker with a call under way: it finishes within the time that draining gives, or is
handed to another worker."""

import asyncio
import signal
import uuid
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client

from io_harness.plugin import harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.integration.conftest import Handle
from tests.scripted import call, turn, write_script

from .conftest import WorkerProcess, address, client, data_dir, worker_process

__all__ = ["address", "client", "data_dir", "worker_process"]


async def start(client: Client, folder: Path, queue: str, seconds: int) -> Handle:
    (folder / "source").mkdir()
    (folder / "source" / "a.txt").write_text("a\n")
    script = write_script(
        folder / "script.yaml",
        turn(call("run_command", command=f"echo x >> b.txt; sleep {seconds}; cat b.txt")),
        turn(call("run_command", command="cat b.txt", shows=("]\nx\n",))),
        turn(call("finish", summary="done")),
    )
    contract = TaskContract.model_validate(
        {
            "goal": "Wait.",
            "workspace": {"kind": "directory", "path": str(folder / "source")},
            "verification": {"kind": "none"},
            "policy": "unattended",
            "model": {"provider": "replay", "name": "script", "base_url": script},
        }
    )
    run: Handle = await client.start_workflow(
        AgentRun.run,
        contract.model_dump(mode="json"),
        id=f"drain-{uuid.uuid4().hex[:8]}",
        task_queue=queue,
    )
    while not await in_command(run):
        await asyncio.sleep(0.05)
    return run


async def in_command(run: Handle) -> bool:
    begun = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    pending = (await run.describe()).raw_description.pending_activities
    return any(a.activity_type.name == "use_tool" and a.state == begun for a in pending)


async def attempts(run: Handle) -> int:
    """Of the first command: the last activity before the second model call."""
    started = [
        e.activity_task_started_event_attributes.attempt
        async for e in run.fetch_history_events()
        if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
    ]
    return started[3]


@pytest.mark.parametrize(("seconds", "expected"), [(3, 1), (25, 2)], ids=["finishes", "hands over"])
@pytest.mark.timeout(240)
async def test_a_call_under_way_when_the_worker_drains(
    client: Client, worker_process: WorkerProcess, tmp_path: Path, seconds: int, expected: int
) -> None:
    run = await start(client, tmp_path, worker_process.task_queue, seconds)
    process = worker_process.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(process.wait, 60)
    assert code == 0
    async with harness_worker(client, task_queue=worker_process.task_queue):
        result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert await attempts(run) == expected
