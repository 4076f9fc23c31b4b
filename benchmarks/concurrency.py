"""Many runs at once on one worker, beside a workflow of two activities that does nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.arena import BARE, OURS, WAITING, Arena, Contestant, NotRun, Played, arena
from benchmarks.overhead import command
from benchmarks.report import Cell, Section, Target, p95

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
    def cpu_ms(self) -> float:
        """Processor time per turn of worker, commands and server together."""
        report = self.played.report
        spent = report.cpu_seconds + report.children_seconds + self.played.server_seconds
        return 1000 * spent / len(self.turns)

    @property
    def done(self) -> int:
        return sum(run.outcome == "done" for run in self.played.report.runs)


async def concurrency(levels: Sequence[int], turns_of: Sequence[int]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    targets: list[Target] = []
    async with arena(["embedded"]) as field:
        for runs, turns in zip(levels, turns_of, strict=True):
            bare = await _load(field, BARE, runs, turns)
            ours = await _load(field, OURS, runs, turns)
            for contestant, load in ((BARE, bare), (OURS, ours)):
                rows.append((
                    runs, contestant.label, turns, load.done, load.per_second, p95(load.turns),
                    load.mib_per_run, load.cpu_ms,
                ))  # fmt: skip
                print(*rows[-1], sep="; ", flush=True)
            share = ours.per_second / bare.per_second
            text = f"{runs} at once: at least {_SHARE:.0%} of the yardstick's turns per second"
            targets.append(Target(text, f"{share:.0%}", share >= _SHARE))
    return Section(
        name="concurrency",
        title="Runs at once on one worker, embedded server",
        columns=(
            "runs", "contestant", "turns each", "runs done", "turns per second", "p95 of a turn, ms",
            "MiB per run", "CPU ms per turn, all processes",
        ),
        rows=rows,
        targets=targets,
        notes=[
            "A run of ours begins with a snapshot of its source and a copy, which the time includes; "
            "MiB per run is the worker's peak above its idle state."
        ],
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
        ),
        rows=[(runs, report.idle_mib, report.held_mib, 1024 * held / runs, done)],
        targets=[
            Target("every run goes on when it is approved", f"{done} of {runs}", done == runs)
        ],
    )
