"""io-harness: runs that all wait for a human at the same time, and are then all approved."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client

from io_harness import runs
from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision, PendingApproval

from .on_temporal import Handle, connect, finished
from .ours import contract_for
from .task import Meter, Report, Task, contestant, resident_mib

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 20
_PATIENCE = 1_800


async def run(task: Task) -> Report:
    plugin = HarnessPlugin(Settings(data_dir=Path(task.scratch)))
    client = await connect(task.address, [plugin])
    async with harness_worker(client):
        meter = Meter()
        handles = await _each(task.urls, lambda url: _start(client, task, url))
        async with asyncio.timeout(_PATIENCE):
            while await _settled(client) < len(handles):  # noqa: ASYNC110 - only the server knows
                await asyncio.sleep(1)
        held = resident_mib()
        # All are asked what they wait for before the first one goes on: then the worker is busy.
        asked = await _each(handles, lambda handle: runs.pending(client, handle.id))
        began = time.perf_counter()
        await _each(list(zip(handles, asked, strict=True)), _approve)
        report = await finished(client, meter, handles)
        seconds = time.perf_counter() - began
        return report.model_copy(update={"held_mib": held, "approved_seconds": seconds})


async def _settled(client: Client) -> int:
    """How many runs wait, or have ended without."""
    found = "HarnessState = 'waiting' OR ExecutionStatus != 'Running'"
    return (await client.count_workflows(found)).count


async def _start(client: Client, task: Task, url: str) -> Handle:
    return await client.start_workflow(
        AgentRun.run,
        contract_for(task, url, policy="careful"),
        id=url.split("/")[3],
        task_queue=TASK_QUEUE,
    )


async def _approve(waiting: tuple[Handle, tuple[PendingApproval, ...]]) -> None:
    handle, asked = waiting
    for pending in asked:
        await handle.signal("decide", Decision(request=pending.id, verdict="approve", by="bench"))


async def _each(items: Sequence[T], act: Callable[[T], Awaitable[R]]) -> list[R]:
    """Do it to all, a few at once."""
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> R:
        async with at_once:
            return await act(item)

    return await asyncio.gather(*(one(item) for item in items))


if __name__ == "__main__":
    contestant(run)
