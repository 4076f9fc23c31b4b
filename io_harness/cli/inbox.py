"""`io-harness inbox`."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.option("--port", default=8240, show_default=True, type=click.IntRange(0, 65535),
              help="Port on 127.0.0.1; 0 takes a free one.")  # fmt: skip
@click.option("--as", "by", metavar="NAME", help="Who decides, as runs log it; by default you.")
@runs_async
async def inbox(port: int, by: str | None) -> Exit:
    """Serve a page that shows what waits for a human, over all runs, until Ctrl-C.

    It listens on the loopback interface only, and takes decisions from the browser that opened the
    printed address, which holds a token. From elsewhere, reach it through ssh -L.

    \b
    Examples:
      io-harness inbox --as anna
      io-harness inbox --port 0
    """
    from .inboxing import serve_inbox

    return await serve_inbox(port, by)
