"""Behind `codec-server`."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

import click
from temporalio.converter import DataConverter

from io_harness.activities.settings import Settings
from io_harness.codec_server import codec_server
from io_harness.connection import configured_codec
from io_harness.server import running_server

from .exits import CommandFailed, Exit
from .web import LOOPBACK, listening, serve


async def serve_codec(port: int, bind: str, origins: Sequence[str]) -> Exit:
    """
    Raises:
        CommandFailed: USAGE; nothing is to be decoded, or for nobody.
    """
    codec = configured_codec()
    if codec is None:
        raise CommandFailed(
            Exit.USAGE,
            "there is nothing to decode: set IO_HARNESS_CODEC or IO_HARNESS_ENCRYPTION_KEYS as the "
            "workers have it",
        )
    allowed = [_origin(each) for each in origins] or _usual()
    if not allowed:
        raise CommandFailed(Exit.USAGE, "give --origin, the address of the Temporal UI")
    listener, address = listening(port, bind)
    click.echo(f"codec      {address}")
    click.echo(f"for        {', '.join(allowed)}", err=True)
    hosts = (LOOPBACK, "localhost")
    await serve(
        codec_server(DataConverter(payload_codec=codec), origins=allowed, hosts=hosts), listener
    )
    return Exit.OK


def _usual() -> list[str]:
    if named := os.environ.get("IO_HARNESS_UI"):
        return [_origin(named)]
    server = running_server(Settings.from_env().data_dir)
    if server is None:
        return []
    shown = urlsplit(server.ui)
    return [f"http://{host}:{shown.port}" for host in (LOOPBACK, "localhost")]


def _origin(url: str) -> str:
    """Scheme, host and port, as browsers send them."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise CommandFailed(Exit.USAGE, f"--origin {url}: not an address like https://HOST")
    return f"{parts.scheme}://{parts.netloc.lower()}"
