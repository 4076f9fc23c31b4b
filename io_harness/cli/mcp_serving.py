"""Behind `mcp`."""

import secrets

import click

from io_harness.activities.settings import Settings
from io_harness.mcp_server import build_server

from .exits import Exit
from .session import session
from .web import listening, serve


async def serve_mcp(*, port: int | None, decides: bool, task_queue: str) -> Exit:
    """Serve on standard streams, or on a port of the loopback where one is given.

    Raises:
        CommandFailed: FAILED; the port is taken.
    """
    socket, address = listening(port) if port is not None else (None, "")
    async with session(Settings.from_env(), task_queue=task_queue) as connection:
        server = build_server(
            connection.client, task_queue=task_queue, ui=connection.ui, decides=decides
        )
        if socket is None:
            await server.run_stdio_async()
            return Exit.OK
        path = f"/{secrets.token_urlsafe(24)}/mcp"
        click.echo(f"mcp        {address}{path}")
        click.echo("Whoever has this address may use it. Ctrl-C ends it.", err=True)
        await serve(server.streamable_http_app(streamable_http_path=path), socket)
    return Exit.OK
