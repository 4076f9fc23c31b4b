"""How long a run stands still when its worker is killed: from SIGKILL to its next completed step,
beside the time after which a silent call counts as lost."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client, WorkflowHandle

from benchmarks.place import Place, embedded_place
from benchmarks.report import Cell, Section, Target, spread
from io_harness import runs
from io_harness.workflows.approvals import Decision
from io_harness.workflows.calls import HEARTBEAT_SECONDS
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.scripted import call, turn, write_script

Run = WorkflowHandle[object, RunResult]
_COMMAND_SECONDS = 1
_PATIENCE = 180
_ALLOWED = 5.0
"""Seconds on top of the heartbeat's time-out: a retry's pause, the command itself, a start."""


@dataclass(frozen=True)
class Case:
    label: str
    waits: bool
    """Killed while a human is waited for, who decides right after; else in a command."""
    spare: bool
    """Another worker is there; else one is started after the kill."""


CASES = (
    Case("in a command; another worker is there", waits=False, spare=True),
    Case("in a command; a worker is started after", waits=False, spare=False),
    Case("while a human is waited for; another worker is there", waits=True, spare=True),
    Case("while a human is waited for; a worker is started after", waits=True, spare=False),
)


async def recovery(rounds: int) -> Section:
    seconds: dict[str, list[float]] = {case.label: [] for case in CASES}
    async with embedded_place() as place:
        for number in range(rounds):
            for case in CASES:
                took = await _killed(place, case)
                seconds[case.label].append(took)
                print(f"round {number + 1}: {case.label}: {took:.1f} s", flush=True)
    calls = [t for case in CASES if not case.waits for t in seconds[case.label]]
    limit = HEARTBEAT_SECONDS + _ALLOWED
    return Section(
        name="recovery",
        title=f"From kill -9 of the worker to the next completed step ({rounds} rounds)",
        columns=("killed", "seconds", "middle half", "longest", "heartbeat time-out"),
        rows=[_row(case, seconds[case.label]) for case in CASES],
        targets=[
            Target(
                f"a call goes on within the heartbeat's time-out and {_ALLOWED:.0f} s",
                f"{max(calls):.1f} s, not over {limit:.0f}",
                max(calls) <= limit,
            )
        ],
        notes=[f"The command takes {_COMMAND_SECONDS} s and is done again from its snapshot."],
        samples=seconds,
    )


def _row(case: Case, seconds: list[float]) -> tuple[Cell, ...]:
    timeout = None if case.waits else HEARTBEAT_SECONDS
    return case.label, statistics.median(seconds), spread(seconds), max(seconds), timeout


async def _killed(place: Place, case: Case) -> float:
    """Seconds from the kill to the next step that was completed."""
    queue = f"recovery-{uuid.uuid4().hex[:8]}"
    workers = [place.worker(queue) for _ in range(1 + case.spare)]
    try:
        for worker in workers:
            await worker.ready()
        run = await _start(place, queue, asks=case.waits)
        request = await _request(place.client, queue) if case.waits else None
        identity = await (_answering(run) if case.waits else _in_command(run))
        (victim,) = (w for w in workers if w.process.pid == int(identity.partition("@")[0]))
        victim.kill()
        at = time.time()
        if not case.spare:
            workers.append(place.worker(queue))
        if request is not None:
            await run.signal("decide", Decision(request=request, verdict="approve"))
        took = await _next_step(run, at) - at
        await run.terminate()
        return took
    finally:
        for worker in workers:
            worker.kill()


async def _until(look: Callable[[], Awaitable[object]]) -> None:
    """Look until there is something."""
    async with asyncio.timeout(_PATIENCE):
        while not await look():  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(0.05)


async def _start(place: Place, queue: str, *, asks: bool) -> Run:
    source = place.folder / queue
    source.mkdir()
    (source / "a.txt").write_text("a\n")
    script = write_script(
        place.folder / f"{queue}.yaml",
        turn(
            call("write_file", path="b.txt", content="b\n")
            if asks
            else call("run_command", command=f"sleep {_COMMAND_SECONDS}")
        ),
        turn(call("finish", summary="done")),
    )
    contract = TaskContract.model_validate(
        {
            "goal": "Wait.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "none"},
            "policy": "careful" if asks else "unattended",
            "model": {"provider": "replay", "name": "script", "base_url": script},
        }
    )
    return await runs.start(place.client, contract, id=queue, task_queue=queue)


async def _request(client: Client, run: str) -> str:
    await _until(lambda: runs.pending(client, run))
    return (await runs.pending(client, run))[0].id


async def _answering(run: Run) -> str:
    """Identity of the worker that has the run in its cache."""
    return [
        event.workflow_task_started_event_attributes.identity
        async for event in run.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    ][-1]


async def _in_command(run: Run) -> str:
    """Wait until the command runs; identity of the worker that runs it."""
    while True:
        for each in (await run.describe()).raw_description.pending_activities:
            begun = each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
            if each.activity_type.name == "use_tool" and begun:
                return each.last_worker_identity
        await asyncio.sleep(0.02)


async def _next_step(run: Run, after: float) -> float:
    """When the first activity after a moment was completed."""
    async for event in run.fetch_history_events(wait_new_event=True):
        at = event.event_time.ToNanoseconds() / 1e9
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED and at > after:
            return at
    raise RuntimeError(f"the run {run.id} ended before its next step")
