"""`io-harness gc`."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--run-days", default=7.0, show_default=True,
              help="Keep runs that Temporal no longer knows for so long.")  # fmt: skip
@click.option("--copy-days", default=1.0, show_default=True,
              help="Keep the working copies of ended runs for so long.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
@runs_async
async def gc(dry_run: bool, run_days: float, copy_days: float, as_json: bool) -> Exit:
    """Remove what this host keeps of runs that nobody can come back to.

    A running run keeps everything, and so does a closed one that Temporal still knows and that could be
    reset, but for its working copy.

    \b
    Examples:
      io-harness gc --dry-run
      io-harness gc --run-days 30
    """
    from .collecting import collect_garbage

    return await collect_garbage(run_days, copy_days, dry_run=dry_run, as_json=as_json)
