"""How long a run stands still when its worker is killed: from SIGKILL to its next completed step,
beside the time after which a silent call counts as lost. The cases of a round wait side by side."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar, get_args

from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client, WorkflowHandle

from benchmarks.place import Place, Worker, embedded_place
from benchmarks.report import Cell, Section, Target, spread
from io_harness import runs
from io_harness.workflows.approvals import Decision
from io_harness.workflows.calls import HEARTBEAT_SECONDS
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Say

Run = WorkflowHandle[object, RunResult]
Moment = Literal["in a command", "in a model call", "while a human is waited for"]
T = TypeVar("T")
_COMMAND_SECONDS = 1
_PATIENCE = 60
"""Seconds for any one thing to happen. A case in which one doesn't counts as failed."""
_ALLOWED = 5.0
"""Seconds on top of the heartbeat's time-out: a retry's pause, the call itself, a start."""
_SPARE, _FRESH = "another worker is there", "a worker is started after"
_ASKED = Call("write_file", {"path": "b.txt", "content": "b\n"})
_COMMAND = Call("run_command", {"command": f"sleep {_COMMAND_SECONDS}"})
_FINISH = Say(calls=(Call("finish", {"summary": "done"}),))
_SLOWLY = Say(calls=_FINISH.calls, write_bytes=16, pause=0.05)


@dataclass(frozen=True)
class Case:
    moment: Moment
    """What the run does when the worker is killed. A human decides right after."""
    spare: bool
    """Another worker is there; else one is started after the kill."""

    @property
    def label(self) -> str:
        return f"{self.moment}; {_SPARE if self.spare else _FRESH}"

    @property
    def activity(self) -> str | None:
        """The call that is lost."""
        match self.moment:
            case "in a command":
                return "use_tool"
            case "in a model call":
                return "complete"
            case "while a human is waited for":
                return None

    @property
    def script(self) -> tuple[Say, Say]:
        match self.moment:
            case "in a command":
                return Say(calls=(_COMMAND,)), _FINISH
            case "in a model call":
                return _SLOWLY, _FINISH
            case "while a human is waited for":
                return Say(calls=(_ASKED,)), _FINISH


CASES = tuple(Case(moment, spare) for moment, spare in product(get_args(Moment), (True, False)))


async def recovery(rounds: int) -> Section:
    seconds: dict[Case, list[float]] = {case: [] for case in CASES}
    failed: list[str] = []
    async with embedded_place() as place:
        for number in range(1, rounds + 1):
            # Workers start one after the other; the runs then mostly wait.
            fields = [_Field(place, case) for case in CASES]
            try:
                for field in fields:
                    await field.open()
                found = await asyncio.gather(*(f.killed() for f in fields), return_exceptions=True)
            finally:
                for field in fields:
                    field.close()
            for case, took in zip(CASES, found, strict=True):
                if isinstance(took, BaseException):
                    failed.append(f"Round {number}, {case.label}: {took!r}.")
                else:
                    seconds[case].append(took)
                    print(f"round {number}: {case.label}: {took:.1f} s", flush=True)
    return _section(rounds, seconds, failed)


def _section(rounds: int, seconds: dict[Case, list[float]], failed: list[str]) -> Section:
    calls = [took for case, each in seconds.items() if case.activity for took in each]
    limit = HEARTBEAT_SECONDS + _ALLOWED
    return Section(
        name="recovery",
        title=f"From kill -9 of the worker to the next completed step ({rounds} rounds)",
        columns=("killed", "seconds", "middle half", "longest", "heartbeat time-out"),
        rows=[_row(case, each) for case, each in seconds.items()],
        targets=[
            Target(
                f"a call goes on within the heartbeat's time-out and {_ALLOWED:.0f} s",
                f"{max(calls, default=0):.1f} s, not over {limit:.0f}",
                max(calls) <= limit if calls else None,
            ),
            Target("every case of every round measured", f"{len(failed)} not", not failed),
        ],
        notes=[
            f"The command takes {_COMMAND_SECONDS} s and is run again from its snapshot. While a human "
            "is waited for, no call is lost but the workflow task that was meant for the worker that "
            "had the run in its cache.",
            *failed,
        ],
        samples={case.label: each for case, each in seconds.items()},
    )


def _row(case: Case, seconds: list[float]) -> tuple[Cell, ...]:
    timeout = HEARTBEAT_SECONDS if case.activity else None
    if not seconds:
        return case.label, None, "not measured", None, timeout
    return case.label, statistics.median(seconds), spread(seconds), max(seconds), timeout


class _Field:
    """A case's own task queue, its run and its workers."""

    def __init__(self, place: Place, case: Case) -> None:
        self._place = place
        self._case = case
        self._queue = f"recovery-{uuid.uuid4().hex[:8]}"
        self._workers: list[Worker] = []

    async def open(self) -> None:
        """Start the workers, and wait until they work."""
        self._workers = [self._place.worker(self._queue) for _ in range(1 + self._case.spare)]
        for worker in self._workers:
            await worker.ready()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()

    async def killed(self) -> float:
        """Seconds from the kill to the next step that was completed."""
        async with FakeProvider(*self._case.script) as model:
            run = await self._start(model.url)
            try:
                return await self._kill(run)
            finally:
                await run.terminate()

    async def _kill(self, run: Run) -> float:
        activity = self._case.activity
        request = None if activity else await _request(self._place.client, run.id)
        identity = await (_calling(run, activity) if activity else _answering(run))
        pid = int(identity.partition("@")[0])
        (victim,) = (each for each in self._workers if each.process.pid == pid)
        victim.kill()
        at = time.time()
        if not self._case.spare:
            self._workers.append(self._place.worker(self._queue))
        if request is not None:
            await run.signal("decide", Decision(request=request, verdict="approve"))
        async with asyncio.timeout(_PATIENCE):
            return await _next_step(run, at) - at

    async def _start(self, model: str) -> Run:
        source = self._place.folder / self._queue
        source.mkdir()
        (source / "a.txt").write_text("a\n")
        contract = TaskContract.model_validate(
            {
                "goal": "Wait.",
                "workspace": {"kind": "directory", "path": str(source)},
                "verification": {"kind": "none"},
                "policy": "careful" if self._case.activity is None else "unattended",
                "model": {
                    "provider": "openai-compatible",
                    "name": "slow",
                    "base_url": f"{model}/v1",
                },
            }
        )
        return await runs.start(
            self._place.client, contract, id=self._queue, task_queue=self._queue
        )


async def _until(look: Callable[[], Awaitable[T]]) -> T:
    """Look until there is something; what it is."""
    async with asyncio.timeout(_PATIENCE):
        while not (found := await look()):  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(0.05)
        return found


async def _request(client: Client, run: str) -> str:
    return (await _until(lambda: runs.pending(client, run)))[0].id


async def _answering(run: Run) -> str:
    """Identity of the worker that has the run in its cache."""
    return [
        event.workflow_task_started_event_attributes.identity
        async for event in run.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    ][-1]


async def _calling(run: Run, activity: str) -> str:
    """Identity of the worker that makes the call, as soon as one does."""

    async def identity() -> str:
        for each in (await run.describe()).raw_description.pending_activities:
            begun = each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
            if each.activity_type.name == activity and begun:
                return each.last_worker_identity
        return ""

    return await _until(identity)


async def _next_step(run: Run, after: float) -> float:
    """When the first activity after a moment was completed."""
    async for event in run.fetch_history_events(wait_new_event=True):
        at = event.event_time.ToNanoseconds() / 1e9
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED and at > after:
            return at
    raise RuntimeError(f"the run {run.id} ended before its next step")
