"""Overhead per turn: the same model without latency, one small command per turn, everybody in turn."""

import statistics
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.arena import (
    BARE,
    LOCAL,
    OPENAI_AGENTS,
    OURS,
    PYDANTIC_AI,
    Arena,
    Contestant,
    NotRun,
    Played,
    ServerKind,
    arena,
)
from benchmarks.report import Cell, Section, Target, spread

Entry = tuple[Contestant, ServerKind]
_ON_TEMPORAL = (OURS, BARE, PYDANTIC_AI, OPENAI_AGENTS)
ENTRIES: tuple[Entry, ...] = (
    *((each, "embedded") for each in _ON_TEMPORAL),
    *((each, "default") for each in _ON_TEMPORAL),
    *((each, "none") for each in LOCAL),
)
_MS_PER_TURN = 100.0
_FLAT = 1.25
"""Last turns against first ones: above this, turns get slower."""


def command(turn: int) -> str:
    """Changes a file, so that there is something to snapshot, and prints a line."""
    return f"echo {turn} >> log.txt; tail -n 1 log.txt"


@dataclass
class Times:
    """Of one entry, over all rounds. A run's first turn is left out: it fills caches."""

    rounds: list[list[float]]
    worker: list[float]
    children: list[float]
    server: list[float]

    @property
    def all(self) -> list[float]:
        return [each for turns in self.rounds for each in turns]

    def add(self, played: Played, turns: int) -> None:
        self.rounds.append([1000 * each for each in played.conversations[0].turns()[1:]])
        self.worker.append(1000 * played.report.cpu_seconds / turns)
        self.children.append(1000 * played.report.children_seconds / turns)
        self.server.append(1000 * played.server_seconds / turns)


async def overhead(turns: int, rounds: int) -> Section:
    times: dict[Entry, Times] = defaultdict(lambda: Times([], [], [], []))
    missing: dict[Entry, str] = {}
    async with arena(["embedded", "default"]) as field:
        for number in range(rounds):
            for entry in ENTRIES:
                if entry in missing:
                    continue
                try:
                    times[entry].add(await _play(field, entry, turns), turns)
                except NotRun as reason:
                    missing[entry] = str(reason)
                else:
                    shown = statistics.median(times[entry].rounds[-1])
                    print(f"round {number + 1}: {_label(entry)}: {shown:.1f} ms", flush=True)
    return Section(
        name="overhead",
        title=f"Overhead per turn ({turns} turns, {rounds} rounds, taking turns)",
        columns=(
            "contestant", "Temporal server", "ms per turn", "middle half", "fastest", "x bare",
            "CPU ms: process", "its commands", "server",
        ),
        rows=[_row(entry, times, missing) for entry in ENTRIES],
        targets=_targets(times),
        samples={_label(entry): found.all for entry, found in times.items()},
    )  # fmt: skip


async def _play(field: Arena, entry: Entry, turns: int) -> Played:
    contestant, server = entry
    played = await field.play(contestant, server, turns, command)
    if not played.complete:
        raise NotRun(f"it ended early: {played.report.runs[0].outcome}")
    return played


def _label(entry: Entry) -> str:
    return f"{entry[0].label} ({entry[1]})"


def _row(entry: Entry, times: dict[Entry, Times], missing: dict[Entry, str]) -> tuple[Cell, ...]:
    contestant, server = entry
    shown = "" if server == "none" else server
    if entry in missing:
        return contestant.label, shown, missing[entry], None, None, None, None, None, None
    found = times[entry]
    bare = times.get((BARE, server))
    return (
        contestant.label,
        shown,
        statistics.median(found.all),
        spread(found.all),
        min(found.all),
        ratio(found, bare) if bare else None,
        statistics.median(found.worker),
        statistics.median(found.children),
        statistics.median(found.server),
    )


def ratio(one: Times, other: Times) -> float:
    """Median over the rounds of the ratio of medians: what slows a whole round hits both."""
    pairs = zip(one.rounds, other.rounds, strict=False)
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)


def _targets(times: dict[Entry, Times]) -> list[Target]:
    found: list[Target] = []
    ours = times.get((OURS, "embedded"))
    if ours is not None:
        median = statistics.median(ours.all)
        found.append(
            Target(
                f"at most {_MS_PER_TURN:.0f} ms per turn, embedded server",
                f"{median:.1f} ms",
                median <= _MS_PER_TURN,
            )
        )
    for server in ("embedded", "default"):
        for peer in (PYDANTIC_AI, OPENAI_AGENTS):
            text = f"at most the time of {peer.label}, {server} server"
            one, other = times.get((OURS, server)), times.get((peer, server))
            if one is None or other is None:
                found.append(Target(text, "", None))
            else:
                factor = ratio(one, other)
                found.append(Target(text, f"{factor:.2f} times theirs", factor <= 1))
    return found


async def flatness(turns: int) -> Section:
    """Whether the last turns of a long run take as long as its first ones."""
    tenth = turns // 10
    rows: list[tuple[Cell, ...]] = []
    targets: list[Target] = []
    samples: dict[str, list[float]] = {}
    async with arena(["embedded"]) as field:
        for contestant in (OURS, PYDANTIC_AI, OPENAI_AGENTS):
            try:
                played = await field.play(contestant, "embedded", turns, command)
            except NotRun as reason:
                rows.append((contestant.label, None, None, None, str(reason)))
                continue
            times = [1000 * each for each in played.conversations[0].turns()[1:]]
            samples[contestant.label] = times
            first, last = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
            rows.append(
                (contestant.label, first, last, last / first, played.report.runs[0].outcome)
            )
            if contestant is OURS:
                found = f"{last / first:.2f} times"
                text = f"last tenth of {turns} turns at most {_FLAT} times the first"
                targets.append(Target(text, found, last / first <= _FLAT))
    return Section(
        name="flat",
        title=f"Turn 1 to {turns}, embedded server",
        columns=("contestant", "ms, first tenth", "ms, last tenth", "ratio", "end"),
        rows=rows,
        targets=targets,
        samples=samples,
    )
