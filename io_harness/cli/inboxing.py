"""Behind `inbox`."""

import click

from io_harness.activities.settings import Settings
from io_harness.inbox.app import InboxApp
from io_harness.inbox.guard import LOGIN, Secrets

from .decide import person
from .exits import Exit
from .session import session
from .web import listening, serve


async def serve_inbox(port: int, by: str | None) -> Exit:
    """
    Raises:
        CommandFailed: FAILED; the port is taken.
    """
    listener, address = listening(port)
    secrets = Secrets()
    async with session(Settings.from_env(), acts=False) as connection:
        app = InboxApp(connection.client, secrets, by=by or person(), ui=connection.ui)
        click.echo(f"inbox      {address}{LOGIN}?token={secrets.token}")
        click.echo("Whoever has this address may decide. Ctrl-C ends it.", err=True)
        await serve(app.asgi(), listener)
    return Exit.OK
