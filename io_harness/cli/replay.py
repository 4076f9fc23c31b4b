"""`io-harness replay`."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.argument("run")
@runs_async
async def replay(run: str) -> Exit:
    """Replay a run's history against this version of the code.

    Calls nothing and changes nothing: it only finds out whether a worker of this version could go on
    with the run. The exit code is 0 if it could, 1 if not.

    \b
    Examples:
      io-harness replay fix-iso-weeks
    """
    from .replaying import replay_run

    return await replay_run(run)
