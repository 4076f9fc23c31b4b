"""How long the commands of a tree of agents outlive its end: three levels, whatever the end."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from temporalio.client import WorkflowHandle

from benchmarks.place import Place, embedded_place
from benchmarks.report import Section, Target, spread
from io_harness import runs
from io_harness.plugin import TASK_QUEUE
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.agents import Kinds, finish, task
from tests.processes import lives
from tests.scripted import call, turn, write_script

Run = WorkflowHandle[AgentRun, RunResult]
_ALLOWED = 2.0
"""Seconds in which an end reaches every agent."""
_LEAVES = 2
_PATIENCE = 120


@dataclass(frozen=True)
class Case:
    label: str
    end: Callable[[Run], Awaitable[float]]
    """Ends the run; gives the time, by the clock, at which that was to begin."""
    wall_seconds: int | None = None


async def _cancel(run: Run) -> float:
    at = time.time()
    await run.cancel()
    return at


async def _terminate(run: Run) -> float:
    at = time.time()
    await run.terminate()
    return at


async def _wait_for_time(run: Run) -> float:
    described = await run.describe()
    return described.start_time.timestamp() + _TREE_SECONDS


async def _let_finish(run: Run) -> float:
    """The root asks before it finishes; the time counts from the answer."""
    (asked,) = await run.query(AgentRun.pending_approvals)
    at = time.time()
    await run.signal("decide", Decision(request=asked.id, verdict="approve"))
    return at


_TREE_SECONDS = 15
CASES = (
    Case("cancelled", _cancel),
    Case("terminated", _terminate),
    Case("the tree's time is over", _wait_for_time, _TREE_SECONDS),
    Case("the root finishes", _let_finish),
)


async def ends(rounds: int) -> Section:
    seconds: dict[str, list[float]] = {case.label: [] for case in CASES}
    async with embedded_place() as place:
        worker = place.worker(TASK_QUEUE)
        try:
            await worker.ready()
            for number in range(rounds):
                for case in CASES:
                    took = await _outlived(place, case)
                    seconds[case.label].append(took)
                    print(f"round {number + 1}: {case.label}: {took:.2f} s", flush=True)
        finally:
            worker.kill()
    return Section(
        name="ends",
        title=f"From the end of a run to that of its agents' commands, three levels ({rounds} rounds)",
        columns=("the run", "seconds", "middle half", "longest"),
        rows=[
            (label, statistics.median(each), spread(each), max(each))
            for label, each in seconds.items()
        ],
        targets=[
            Target(
                f"every agent within {_ALLOWED:g} s",
                f"{longest:.1f} s",
                longest <= _ALLOWED,
            )
            for longest in [max(max(each) for each in seconds.values())]
        ],
        samples=seconds,
    )


async def _outlived(place: Place, case: Case) -> float:
    """Seconds from the end to that of the last command."""
    marks = [f"1{uuid.uuid4().int % 10**9}" for _ in range(_LEAVES)]
    started = await runs.start(place.client, _contract(place, marks, case), id=f"ends-{marks[0]}")
    run = place.client.get_workflow_handle_for(AgentRun.run, started.id)
    async with asyncio.timeout(_PATIENCE):
        while not all(map(lives, marks)) or not await _asks(run):  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(0.05)
        at = await case.end(run)
        while any(map(lives, marks)):  # noqa: ASYNC110 - only the host knows
            await asyncio.sleep(0.02)
    return time.time() - at


async def _asks(run: Run) -> bool:
    return bool(await run.query(AgentRun.pending_approvals))


def _contract(place: Place, marks: Sequence[str], case: Case) -> TaskContract:
    """A root that asks a human; its agent waits for agents that run a command each."""
    source = place.folder / "source"
    source.mkdir(exist_ok=True)
    kinds = Kinds(place.folder)
    for mark in marks:
        kinds.add(f"runs-{mark}", turn(call("run_command", command=f"sleep {mark}")))
    below = call("spawn_agents", agents=[task(f"runs-{mark}") for mark in marks])
    kinds.add("middle", turn(below))
    spawned = call("spawn_agents", agents=[task("middle", agents=_LEAVES)], wait=False)
    asks = call("ask_user", question="May I end?")
    script = place.folder / f"root-{marks[0]}.yaml"
    return TaskContract.model_validate(
        {
            "goal": "Wait.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "none"},
            "policy": "unattended",
            "model": {
                "provider": "replay",
                "name": "script",
                "base_url": write_script(script, turn(spawned), turn(asks), finish()),
            },
            "containment": {
                "agents": 1 + _LEAVES,
                "concurrent": 1 + _LEAVES,
                "depth": 2,
                "wall_seconds": case.wall_seconds,
            },
            "agents": kinds.all,
        }
    )
