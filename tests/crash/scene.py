"""One scripted run (model, approval, edit, command, verify, land) in which something is killed."""

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.result import Outcome, RunResult
from tests.forks import FORKS
from tests.integration.conftest import BROKEN, FIXED, TEST, VERIFY, Handle
from tests.scripted import call, turn, write_script

from . import victim
from .servers import ServerProcess, connected
from .test_kill_worker import committed, work
from .victim import Moment

T = TypeVar("T")
Victim = Literal["worker", "server"]
STEPS = 3
USD = Decimal("0.003")
RPC = timedelta(seconds=20)
CASE_SECONDS = 300
"""A run that was killed once goes on after time-outs of seconds; a busy machine takes longer."""
NOISE = 4
"""Decisions that name no request, sent at random moments."""


@dataclass(frozen=True)
class Case:
    """What is killed, and when: at the n-th event of the run's history, counted over
    continue-as-new, or at a point of an activity."""

    victim: Victim
    at: int | Moment


@dataclass(frozen=True)
class Row:
    """What became of a run."""

    case: Case | None
    killed_at: str
    """The event or point; empty if the run ended before it."""
    outcome: str
    wrong: tuple[str, ...]
    steps: int
    usd: Decimal
    seconds: float
    executions: int
    events: int


class Worker:
    """A worker process that can be killed and started again."""

    def __init__(self, address: str, data_dir: Path, task_queue: str) -> None:
        self._arguments = (address, data_dir, task_queue)

    def start(self, moment: Moment | None) -> None:
        self._process = FORKS.Process(target=victim.serve, args=(*self._arguments, moment))
        self._process.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    async def ended(self) -> None:
        while self._process.is_alive():
            await asyncio.sleep(0.02)
        self._process.join()


@dataclass
class Scene:
    """A run and all that acts on it."""

    client: Client
    server: ServerProcess
    data_dir: Path
    folder: Path
    run: Handle
    worker: Worker

    async def history(self) -> AsyncIterator[HistoryEvent]:
        """Every event of the run as it appears, over continue-as-new and restarts of the server."""
        run_id, seen = self.run.first_execution_run_id, 0
        while run_id is not None:
            handle = self.client.get_workflow_handle(self.run.id, run_id=run_id)
            following: str | None = run_id
            try:
                async for event in handle.fetch_history_events(wait_new_event=True):
                    if event.event_id <= seen:
                        continue
                    seen = event.event_id
                    yield event
                    continued = event.workflow_execution_continued_as_new_event_attributes
                    if continued.new_execution_run_id:
                        following, seen = continued.new_execution_run_id, 0
                    elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
                        following = None
            except RPCError:
                await asyncio.sleep(0.1)
            run_id = following

    async def approve(self) -> None:
        """Approve what asks, and say the opposite right after, which must not count."""
        while True:
            for pending in await patiently(
                lambda: self.run.query(AgentRun.pending_approvals, rpc_timeout=RPC)
            ):
                for verdict in ("approve", "deny"):
                    await self.send(
                        Decision.model_validate({"request": pending.id, "verdict": verdict})
                    )
            await asyncio.sleep(0.1)

    async def disturb(self, moments: random.Random) -> None:
        for index in range(NOISE):
            await asyncio.sleep(moments.uniform(0, 1.5))
            await self.send(Decision(request=f"0.0-{index:012}", verdict="deny"))

    async def send(self, decision: Decision) -> None:
        await patiently(lambda: self.run.signal(AgentRun.decide, decision, rpc_timeout=RPC))

    async def result(self) -> RunResult:
        while True:
            with suppress(RPCError):
                return await self.run.result()
            await asyncio.sleep(0.2)


async def patiently(act: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Try until the server (and, for a query, a worker) answers."""
    while True:
        try:
            return await act()
        except RPCError as error:
            if "already completed" in str(error):
                raise asyncio.CancelledError from error
            await asyncio.sleep(0.2)


async def play(
    case: Case | None, server: ServerProcess, folder: Path, moments: random.Random
) -> Row:
    """Run the scene once, with the case's kill.

    Args:
        folder: The run's own; the snapshot store is there too.
    """
    begun = time.monotonic()
    data_dir = folder / "data"
    client = await connected(server.address, data_dir)
    name = f"crash-{uuid.uuid4().hex[:8]}"
    run: Handle = await client.start_workflow(
        "AgentRun", contract(folder), id=name, task_queue=name, result_type=RunResult
    )
    worker = Worker(server.address, data_dir, name)
    scene = Scene(client, server, data_dir, folder, run, worker)
    moment = case.at if case and isinstance(case.at, Moment) else None
    worker.start(moment)
    around = [asyncio.create_task(scene.approve()), asyncio.create_task(scene.disturb(moments))]
    try:
        async with asyncio.timeout(CASE_SECONDS):
            killed_at = await (_kill(case, scene) if case else _nothing())
            result = await scene.result()
            return await _row(case, killed_at, result, scene, time.monotonic() - begun)
    except TimeoutError:
        return Row(case, "?", "hangs", ("no end",), 0, Decimal(0), CASE_SECONDS, 0, 0)
    finally:
        for task in around:
            task.cancel()
        await asyncio.gather(*around, return_exceptions=True)
        worker.kill()


async def _nothing() -> str:
    return ""


async def _kill(case: Case, scene: Scene) -> str:
    """Do what the case says, and start again what was killed; what it was that had just happened."""
    if isinstance(case.at, Moment):
        await scene.worker.ended()
        scene.worker.start(None)
        return str(case.at)
    count = 0
    async for event in scene.history():
        count += 1
        if count < case.at:
            continue
        name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        if case.victim == "server":
            await scene.server.again()
        else:
            scene.worker.kill()
            scene.worker.start(None)
        return f"{event.event_id} {name}"
    return ""


def contract(folder: Path) -> dict[str, object]:
    """The command leaves a line each time that it runs; the edit can't be made twice."""
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "calc.py").write_text(BROKEN)
    (source / "test_calc.py").write_text(TEST)
    (source / ".gitignore").write_text("__pycache__/\n")
    script = write_script(
        folder / "script.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("run_command", command="echo ran >> ran.txt; sleep 0.3")),
        turn(call("finish", summary="done")),
    )
    asks = {"effect": "ask", "act": "write", "target": "calc.py"}
    return {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(source)},
        "verification": VERIFY,
        "policy": {"preset": "unattended", "layers": [{"name": "asks", "rules": [asks]}]},
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }


async def _row(
    case: Case | None, killed_at: str, result: RunResult, scene: Scene, seconds: float
) -> Row:
    executions = await chain(scene)
    events = [event for events in executions for event in events]
    so_far = await patiently(lambda: scene.run.query(AgentRun.result_so_far, rpc_timeout=RPC))
    assert so_far is not None
    applied = Counter(d.decision.request for d in so_far.decisions if d.effect == "applied")
    source = scene.folder / "source"
    done = sum((committed(events) for events in executions), Counter[str]())
    found: dict[str, tuple[object, object]] = {
        "outcome": (result.outcome, Outcome.SUCCESS),
        "edit": ((source / "calc.py").read_text(), FIXED),
        "command": (_read(source / "ran.txt"), "ran\n"),
        "snapshots": (len(work(scene.data_dir, result)), 2),
        "steps": (result.spend.steps, STEPS),
        "tool calls": (result.spend.tool_calls, STEPS),
        "USD": (result.spend.usd, USD),
        "model calls": (done["complete"], STEPS),
        "verifications": (done["verify"], 1),
        "landings": (done["land"], 1),
        "decisions": (sorted(applied.values()), [1]),
    }
    return Row(
        case=case,
        killed_at=killed_at,
        outcome=result.outcome.value,
        wrong=tuple(f"{k}: {a!r}, not {b!r}" for k, (a, b) in found.items() if a != b),
        steps=result.spend.steps,
        usd=result.spend.usd,
        seconds=seconds,
        executions=len(executions),
        events=len(events),
    )


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def chain(scene: Scene) -> list[list[HistoryEvent]]:
    executions: list[list[HistoryEvent]] = []
    run_id = scene.run.first_execution_run_id
    while run_id:
        handle = scene.client.get_workflow_handle(scene.run.id, run_id=run_id)
        executions.append([event async for event in handle.fetch_history_events()])
        last = executions[-1][-1].workflow_execution_continued_as_new_event_attributes
        run_id = last.new_execution_run_id
    return executions
