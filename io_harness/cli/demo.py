"""`io-harness demo`."""

from pathlib import Path

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.option("--live", is_flag=True, help="Use a real model; its key must be set.")
@click.option("--model", metavar="PROVIDER/NAME", help="Which one, with --live.")
@click.option("--yes", "-y", is_flag=True, help="Approve the landing without asking.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR",
              help="Put the demo's project there, and leave it.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON line.")
@click.option("--verbose", "-v", is_flag=True, help="Show the output of every tool call.")
@runs_async
async def demo(
    live: bool, model: str | None, yes: bool, keep: Path | None, as_json: bool, verbose: bool
) -> Exit:
    """Watch an agent fix a bug in a small project, verified by its tests.

    The model's words are a recording, so no key is needed; server, worker, snapshots, commands and
    tests are real.

    \b
    Examples:
      io-harness demo
      io-harness demo --live --model openai/gpt-5.5 --keep demo-project
    """
    from .demonstrating import Demo

    return await Demo(live or model is not None, model, yes, keep, as_json, verbose).show()
