"""Many runs at once on one worker, beside a workflow of two activities that does nothing else, and
beside one that isolates and commits in the plainest way."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.arena import (
    BARE,
    ISOLATED,
    OURS,
    WAITING,
    Arena,
    Contestant,
    NotRun,
    Played,
    arena,
)
from benchmarks.overhead import command
from benchmarks.report import Cell, Section, Target, p95

_CONTESTANTS = (BARE, ISOLATED, OURS)
_SHARE = 0.9
"""Of the yardstick's throughput."""


@dataclass(frozen=True)
class Load:
    """What one contestant did with so many runs at once."""

    played: Played
    runs: int

    @property
    def turns(self) -> list[float]:
        """Milliseconds."""
        return [1000 * t for each in self.played.conversations for t in each.turns()]

    @property
    def per_second(self) -> float:
        """Turns, from the first request of the first run to the last one of the last run."""
        arrivals = [at for each in self.played.conversations for at in each.arrivals]
        return len(self.turns) / (max(arrivals) - min(arrivals))

    @property
    def mib_per_run(self) -> float:
        return (self.played.report.peak_mib - self.played.report.idle_mib) / self.runs

    @property
    def done(self) -> int:
        return sum(run.outcome == "done" for run in self.played.report.runs)


async def concurrency(levels: Sequence[int], turns_of: Sequence[int]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    targets: list[Target] = []
    async with arena(["embedded"]) as field:
        for contestant in _CONTESTANTS:  # compiles, and probes the sandbox
            await _load(field, contestant, runs=1, turns=2)
        for runs, turns in zip(levels, turns_of, strict=True):
            loads: dict[Contestant, Load] = {}
            for contestant in _CONTESTANTS:
                load = loads[contestant] = await _load(field, contestant, runs, turns)
                rows.append(_row(contestant, load, turns))
                print(*rows[-1], sep="; ", flush=True)
            share = loads[OURS].per_second / loads[BARE].per_second
            text = f"{runs:,} at once: at least {_SHARE:.0%} of the yardstick's turns per second"
            targets.append(Target(text, f"{share:.0%}", share >= _SHARE))
    return Section(
        name="concurrency",
        title="Runs at once on one worker, embedded server",
        columns=(
            "runs", "contestant", "turns each", "runs done", "turns per second", "p95 of a turn, ms",
            "MiB per run", "CPU ms per turn: process", "its commands", "server",
            "ms an activity waits", "ms a workflow task waits", "slots used", "runs replayed",
        ),
        rows=rows,
        targets=targets,
        notes=[
            "A run of ours begins with a snapshot of its source and a copy, which the time includes; "
            "MiB per run is the worker's peak above its idle state. The last four columns are what "
            "Temporal's SDK measures of the worker: means from scheduling to start, most activities "
            "at a time, and workflow tasks for which a run was no longer in the worker's cache."
        ],
    )  # fmt: skip


def _row(contestant: Contestant, load: Load, turns: int) -> tuple[Cell, ...]:
    report, count, sdk = load.played.report, len(load.turns), load.played.report.sdk
    spent = (report.cpu_seconds, report.children_seconds, load.played.server_seconds)
    return (
        load.runs,
        contestant.label,
        turns,
        load.done,
        load.per_second,
        p95(load.turns),
        load.mib_per_run,
        *(1000 * seconds / count for seconds in spent),
        *((sdk.activity_wait_ms, sdk.workflow_task_wait_ms, sdk.slots_used, sdk.cache_misses)
          if sdk else ()),
    )  # fmt: skip


async def _load(field: Arena, contestant: Contestant, runs: int, turns: int) -> Load:
    return Load(await field.play(contestant, "embedded", turns, command, runs=runs), runs)


async def waiting(runs: int) -> Section:
    """Runs that all wait for a human at once; then each is approved and must end."""
    async with arena(["embedded"]) as field:
        try:
            played = await field.play(WAITING, "embedded", 1, command, runs=runs)
        except NotRun as reason:
            return Section("waiting", "Waiting runs", ("runs", "end"), [(runs, str(reason))])
    report = played.report
    done = sum(run.outcome == "done" for run in report.runs)
    held = report.held_mib - report.idle_mib
    return Section(
        name="waiting",
        title="Runs that wait for a human, on one worker",
        columns=(
            "runs waiting at once",
            "MiB, worker idle",
            "MiB, all waiting",
            "KiB per run",
            "done after approval",
            "seconds from the first approval to the last end",
        ),
        rows=[
            (
                runs,
                report.idle_mib,
                report.held_mib,
                1024 * held / runs,
                done,
                report.approved_seconds,
            )
        ],
        targets=[
            Target("every run goes on when it is approved", f"{done} of {runs}", done == runs)
        ],
    )
