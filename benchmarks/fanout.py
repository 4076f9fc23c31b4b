"""Fan-out: one agent starts many sub-agents, beside the same with one sub-agent at a time."""

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle

from benchmarks.place import Place, embedded_place
from benchmarks.report import Section, Target
from io_harness import runs, trace
from io_harness.plugin import TASK_QUEUE
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.agents import Kinds, finish, task
from tests.scripted import call, turn, write_script

_WORK_SECONDS = 0.5
"""Of each sub-agent's one command; a model and real tests would take longer."""
_AT_A_TIME = 0.8
"""Share of the allowed concurrency that is to be reached."""


@dataclass(frozen=True)
class Fanned:
    seconds: float
    most: int
    """Sub-agents that were alive at the same time."""
    peak_mib: float
    """Of the worker's own memory, without that of the commands it ran."""
    parts: int
    """Executions over which the root's history is spread."""
    events: int
    history_kib: float
    """All parts together."""


async def fanout(agents: int, concurrent: int) -> Section:
    found = {each: await _fan_out(agents, each) for each in (concurrent, 1)}
    wide, narrow = found[concurrent], found[1]
    print(f"{agents} sub-agents: {wide.seconds:.0f} s, one at a time {narrow.seconds:.0f} s")
    return Section(
        name="fanout",
        title=f"{agents} sub-agents of one run, each with a command of {_WORK_SECONDS:g} s",
        columns=(
            "at a time", "reached", "seconds", "peak MiB of the worker", "root: events",
            "KiB", "executions",
        ),
        rows=[
            (allowed, each.most, each.seconds, each.peak_mib, each.events, each.history_kib, each.parts)
            for allowed, each in found.items()
        ],
        targets=[
            Target(
                f"at least {_AT_A_TIME:.0%} of {concurrent} at a time",
                f"{wide.most}",
                wide.most >= _AT_A_TIME * concurrent,
            ),
            Target(
                "faster than one at a time",
                f"{narrow.seconds / wide.seconds:.1f} times",
                wide.seconds < narrow.seconds,
            ),
        ],
        notes=[
            "Each sub-agent has a copy of its own, writes a file, is verified by a command in a fresh "
            "checkout, and is merged. One worker, model without latency."
        ],
    )  # fmt: skip


async def _fan_out(agents: int, concurrent: int) -> Fanned:
    async with embedded_place() as place:
        worker = place.worker(TASK_QUEUE)
        try:
            await worker.ready()
            contract = _contract(place.folder, agents, concurrent)
            begun = time.monotonic()
            run = await runs.start(place.client, contract, id=f"fanout-{uuid.uuid4().hex[:8]}")
            result = await run.result()
            seconds, peak = time.monotonic() - begun, worker.peak_mib()
        finally:
            worker.kill()
        if result.outcome is not Outcome.SUCCESS or result.agents != agents:
            raise RuntimeError(f"{result.outcome}, {result.agents} agents: {result.reason}")
        return await _fanned(place, run, seconds, peak)


async def _fanned(
    place: Place, run: WorkflowHandle[object, RunResult], seconds: float, peak: float
) -> Fanned:
    now = most = events = size = parts = 0
    async for event in trace.events(place.client, run.id):
        events += 1
        size += event.ByteSize()
        kind = EventType.Name(event.event_type)
        now += kind.endswith("CHILD_WORKFLOW_EXECUTION_STARTED")
        now -= kind.endswith("CHILD_WORKFLOW_EXECUTION_COMPLETED")
        parts += kind == "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED"
        most = max(most, now)
    return Fanned(seconds, most, peak, parts, events, size / 1024)


def _contract(folder: Path, agents: int, concurrent: int) -> TaskContract:
    source = folder / "source"
    source.mkdir()
    (source / "readme.txt").write_text("Notes come here.\n")
    kinds = Kinds(folder)
    command = f"sleep {_WORK_SECONDS}; echo a note > $(mktemp note.XXXXXXXX)"
    kinds.add("writer", turn(call("run_command", command=command)), finish())
    verification = {"kind": "command", "run": "ls note.*"}
    parts = [task("writer", verification, tokens=60_000)] * agents
    spawned = call("spawn_agents", agents=parts)
    model = {
        "provider": "replay",
        "name": "script",
        "base_url": write_script(folder / "root.yaml", turn(spawned), finish()),
    }
    return TaskContract.model_validate(
        {
            "goal": "Have notes written.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "command", "run": f'test "$(ls note.* | wc -l)" = {agents}'},
            "policy": "unattended",
            "model": model,
            "budget": {"tokens": 100_000 * (agents + 10)},
            "containment": {"agents": agents, "concurrent": concurrent},
            "agents": kinds.all,
        }
    )
