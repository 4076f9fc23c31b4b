"""Runs benchmarks; prints what they found and keeps it as JSON and Markdown.

    uv run --group bench python -m benchmarks overhead
    uv run --group bench python -m benchmarks all --quick

Only ratios within one run mean anything on another machine.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.concurrency import concurrency, waiting
from benchmarks.ends import ends
from benchmarks.fanout import fanout
from benchmarks.gathered import corpora, egress, resilience, sandbox
from benchmarks.history import history
from benchmarks.machine import machine
from benchmarks.overhead import flatness, overhead
from benchmarks.recovery import recovery
from benchmarks.report import Section, markdown, store
from benchmarks.startup import startup


@dataclass(frozen=True)
class Size:
    """How much is measured: everything, or enough to see that it works."""

    quick: bool

    def __call__(self, whole: int, quick: int) -> int:
        return quick if self.quick else whole


BENCHMARKS: dict[str, Callable[[Size], Awaitable[Section]]] = {
    "overhead": lambda size: overhead(turns=size(40, 10), rounds=size(5, 1)),
    "flat": lambda size: flatness(turns=size(400, 40)),
    "recovery": lambda size: recovery(rounds=size(4, 1)),
    "fanout": lambda size: fanout(agents=size(120, 6), concurrent=size(16, 3)),
    "ends": lambda size: ends(rounds=size(5, 1)),
    "history": lambda size: history([25, 100, 400, 1_000] if not size.quick else [10, 40]),
    "concurrency": lambda size: concurrency(
        [1, 10] if size.quick else [1, 10, 100], [5, 5] if size.quick else [40, 20, 5]
    ),
    "crowd": lambda size: concurrency([size(1_000, 20)], [2]),
    "waiting": lambda size: waiting(runs=size(1_000, 10)),
    "startup": lambda size: startup(rounds=size(5, 1)),
    "sandbox": lambda size: sandbox(rounds=size(100, 5)),
    "egress": lambda size: egress(dials=size(500, 50)),
    "resilience": lambda size: resilience(),
    "corpora": lambda size: corpora(),
}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, required=True, type=click.Choice([*BENCHMARKS, "all"]))
@click.option("--quick", is_flag=True, help="Few turns and rounds: shows that it works.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("benchmarks/results"),
    help="Folder for the JSON and the Markdown.",
)
def main(names: tuple[str, ...], quick: bool, out: Path) -> None:
    chosen = tuple(BENCHMARKS) if "all" in names else names
    before = machine()
    sections = [asyncio.run(_measured(BENCHMARKS[name], Size(quick))) for name in chosen]
    path = store(out, before, sections)
    click.echo(f"\n{markdown(before, sections)}\n{path}")


async def _measured(benchmark: Callable[[Size], Awaitable[Section]], size: Size) -> Section:
    return await benchmark(size)


if __name__ == "__main__":
    main()
