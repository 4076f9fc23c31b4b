"""`io-harness codec-server`."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command("codec-server")
@click.option("--port", default=8241, show_default=True, type=click.IntRange(0, 65535),
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--bind", default="127.0.0.1", show_default=True, metavar="ADDRESS",
              help="Where to listen. Only in a container, whose port is published to the host's "
              "loopback interface alone, anything else.")  # fmt: skip
@click.option("--origin", "origins", metavar="URL", multiple=True,
              help="Of the Temporal UI, like https://cloud.temporal.io; may be given again. By "
              "default IO_HARNESS_UI, or the embedded server's UI.")  # fmt: skip
@runs_async
async def codec_server(port: int, bind: str, origins: tuple[str, ...]) -> Exit:
    """Let the Temporal UI and the temporal command show compressed and encrypted payloads.

    It listens on the loopback interface and decodes with this environment's IO_HARNESS_CODEC and
    IO_HARNESS_ENCRYPTION_KEYS, for whoever can connect and for pages of the named origins. Enter the
    printed address in the UI, under the glasses at the top right, or give it to the temporal command.

    \b
    Examples:
      io-harness codec-server --origin https://temporal.example.com
      temporal workflow show --workflow-id RUN --codec-endpoint http://127.0.0.1:8241
    """
    from .decoding import serve_codec

    return await serve_codec(port, bind, origins)
