"""How history grows: events and bytes per turn at several lengths, beside the peers and a workflow that
passes the whole transcript to each model call. The prompt has 20 KB, tool outputs 4 KB of a test
runner's lines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.arena import OPENAI_AGENTS, OURS, PYDANTIC_AI, Arena, Contestant, NotRun, arena
from benchmarks.report import Cell, Section, Target

WHOLE = Contestant("workflow that passes the whole transcript", "whole_transcript")
_BYTES_PER_TURN = 8 * 1024
_EVENTS_PER_TURN = 12
_SHARE = 1 / 20
"""Of a peer's history."""
_COMPARED_AT = 100
"""Turns."""
_PROMPT = "Mend the parser of dates. " * 800
_FLAT = 1.1
"""Longest runs against shortest: above this, a turn costs more in a longer run."""


def lines(turn: int) -> str:
    """Command that prints what a test runner might."""
    line = r'"tests/unit/test_part_%d.py::test_case_%d PASSED in %.3f s\n"'
    numbers = "rand() * 90, rand() * 900, rand()"
    program = f"BEGIN {{ srand({turn}); while (n++ < 90) printf {line}, {numbers} }}"
    return f"awk '{program}' | head -c 4096"


def noise(turn: int) -> str:
    """Command whose output no codec makes smaller: the worst case."""
    return f": {turn}; head -c 3072 /dev/urandom | base64 -w 0"


@dataclass(frozen=True)
class Grown:
    """The history of one run."""

    contestant: Contestant
    output: str
    asked: int
    turns: int
    """Model calls that were answered, the last one included, which has no tool call."""
    executions: int
    """One, and one for each continuation."""
    events: int
    bytes: int
    outcome: str

    @property
    def bytes_per_turn(self) -> float:
        return self.bytes / self.turns

    @property
    def outside(self) -> int:
        """Events that are of no turn of model and tool: of the start, the last answer, the end, and
        the continuations."""
        return self.events - _EVENTS_PER_TURN * (self.turns - 1)

    def row(self) -> tuple[Cell, ...]:
        return (
            self.contestant.label, self.output, self.asked, self.turns, self.executions,
            round(self.events / self.turns, 2), self.outside, round(self.bytes_per_turn),
            self.outcome,
        )  # fmt: skip

    @property
    def ended_early(self) -> bool:
        return self.outcome != "done"


async def history(lengths: Sequence[int]) -> Section:
    missing: list[str] = []
    async with arena(["embedded"]) as field:
        ours = [await _grow(field, OURS, lines, turns) for turns in lengths]
        worst = await _grow(field, OURS, noise, lengths[-1])
        others: list[Grown] = []
        for contestant in (WHOLE, PYDANTIC_AI, OPENAI_AGENTS):
            try:
                others += await _until_death(field, contestant, lengths)
            except NotRun as reason:
                missing.append(f"{contestant.label} did not run: {reason}.")
    shortest, second, longest = ours[0], ours[1], ours[-1]
    most_bytes = max(each.bytes_per_turn for each in (*ours, worst))
    one_more = (second.events - shortest.events) / (second.turns - shortest.turns)
    slope = longest.bytes_per_turn / shortest.bytes_per_turn
    return Section(
        name="history",
        title="Growth of history (tool outputs of 4 KB)",
        columns=(
            "contestant",
            "output",
            "turns asked",
            "done",
            "executions",
            "events per turn",
            f"events beyond {_EVENTS_PER_TURN} a turn",
            "bytes per turn",
            "end",
        ),
        rows=[each.row() for each in (*ours, worst, *others)],
        targets=[
            Target(
                f"at most {_BYTES_PER_TURN:,} bytes per turn, whatever the output",
                f"{most_bytes:,.0f}",
                most_bytes <= _BYTES_PER_TURN,
            ),
            Target(
                f"at most {_EVENTS_PER_TURN} events for one more turn of model and tool "
                f"({shortest.asked} to {second.asked} turns)",
                f"{one_more:.2f}",
                one_more <= _EVENTS_PER_TURN,
            ),
            Target(
                f"bytes per turn at {lengths[-1]} turns within {_FLAT} x those at {lengths[0]}",
                f"{slope:.2f}",
                slope <= _FLAT,
            ),
            Target(
                f"{lengths[-1]:,} turns done",
                f"{longest.turns - 1:,}",
                not longest.ended_early,
            ),
            *_shares(ours, others),
        ],
        notes=[
            *missing,
            "Of ours, the events beyond those of the turns are the start, the last answer and the end, "
            "and 5 for each continuation; a summary of the transcript, where one was made, is 6. The "
            "transcript that is carried adds to the bytes, the more the less it compresses.",
            "The server ends a workflow whose history passes 50 MB.",
        ],
    )


async def _until_death(field: Arena, contestant: Contestant, lengths: Sequence[int]) -> list[Grown]:
    """At each length, up to the first one that it doesn't reach."""
    found: list[Grown] = []
    for turns in lengths:
        found.append(await _grow(field, contestant, lines, turns))
        if found[-1].ended_early:
            break
    return found


def _shares(ours: Sequence[Grown], others: Sequence[Grown]) -> list[Target]:
    own = {each.asked: each.bytes for each in ours}
    return [
        Target(
            f"at {each.asked} turns at most a twentieth of the bytes of {each.contestant.label}",
            f"1/{each.bytes / own[each.asked]:.0f}",
            own[each.asked] <= each.bytes * _SHARE,
        )
        for each in others
        if each.asked == _COMPARED_AT and not each.ended_early
    ]


async def _grow(
    field: Arena, contestant: Contestant, output: Callable[[int], str], turns: int
) -> Grown:
    played = await field.play(contestant, "embedded", turns, output, goal=_PROMPT)
    (run,) = played.report.runs
    (conversation,) = played.conversations
    done = len(conversation.arrivals)
    grown = Grown(
        contestant, output.__name__, turns, done, run.executions, run.events, run.bytes, run.outcome
    )
    print(*grown.row(), sep="; ", flush=True)
    return grown
