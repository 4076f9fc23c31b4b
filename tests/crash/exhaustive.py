"""Kills at every event of a run, and at every point that history doesn't show, as a table:

    python -m tests.crash.exhaustive [worker|server]

The run: model, approval, edit, command, verification, land, with continue-as-new after 30 events
and signals at random moments. The exit code is 1 if a run lost or doubled anything.
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .scene import Case, Row, Victim, play
from .servers import ServerProcess
from .victim import Moment

AT_ONCE = {"worker": 6, "server": 3}
MOMENTS = tuple(
    Moment(activity, time, when)
    for activity, times in (
        ("admit", 1), ("prepare", 1), ("complete", 3), ("use_tool", 3), ("verify", 1), ("land", 1),
        ("release", 1),
    )
    for time in range(1, times + 1)
    for when in ("before", "after")
)  # fmt: skip
"""`use_tool` runs three times: the edit asks, then acts, then the command runs."""


async def play_all(
    cases: Sequence[Case | None], folder: Path, seed: int, at_once: int
) -> tuple[Row, ...]:
    """The cases' rows. Those of a worker share a server; one that kills the server has its own."""
    shared = ServerProcess(folder / "server")
    shared.start()
    places = asyncio.Semaphore(at_once)

    async def one(index: int, case: Case | None) -> Row:
        async with places:
            own = case is not None and case.victim == "server"
            server = ServerProcess(folder / f"server-{index}") if own else shared
            if own:
                server.start()
            try:
                row = await play(case, server, folder / str(index), random.Random(seed + index))
                print(line(row), flush=True)
                return row
            finally:
                if own:
                    server.kill()

    try:
        return tuple(await asyncio.gather(*(one(i, case) for i, case in enumerate(cases))))
    finally:
        shared.kill()


HEAD = """\
| killed | at event | outcome | effects once | steps | USD | executions | seconds |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: |"""


def line(row: Row) -> str:
    victim = row.case.victim if row.case else "nothing"
    once = "; ".join(row.wrong) or "yes"
    at = row.killed_at or ("-" if row.case is None else "ended before")
    return (
        f"| {victim} | {at} | {row.outcome} | {once} | {row.steps} | {row.usd} | "
        f"{row.executions} | {row.seconds:.0f} |"
    )


async def main(victims: Sequence[Victim]) -> int:
    seed = random.randrange(2**32)
    print(f"seed {seed}\n\n{HEAD}")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        (reference,) = await play_all([None], Path(folder) / "reference", seed, 1)
        for victim in victims:
            cases = [Case(victim, at) for at in range(1, reference.events + 1)]
            if victim == "worker":
                cases += [Case(victim, moment) for moment in MOMENTS]
            rows = await play_all(cases, Path(folder) / victim, seed, AT_ONCE[victim])
            wrong += sum(bool(row.wrong) for row in rows)
            killed = sum(bool(row.killed_at) for row in rows)
            print(f"\n{killed} kills of the {victim}, {wrong} runs with anything lost or doubled\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    victims: tuple[Victim, ...] = ("worker", "server")
    sys.exit(asyncio.run(main([v for v in victims if v in sys.argv[1:]] or victims)))
