"""Behind `mcp login`."""

import asyncio
import contextlib
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from io_harness.activities.egress import GateJudge
from io_harness.activities.gate import Gate
from io_harness.activities.mcp.errors import McpFailure
from io_harness.activities.mcp.oauth.callback import Callback, listening
from io_harness.activities.mcp.oauth.login import log_in
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.sandbox.egress import Question
from io_harness.visible import visible
from io_harness.workflows.mcp_auth import Login
from io_harness.workflows.mcp_contract import HttpServer
from io_harness.workflows.policy import policy_of

from .exits import CommandFailed, Exit
from .task import build

_WAIT_SECONDS = 600.0


async def log_in_to(file: Path, server_id: str, *, port: int, browser: bool) -> Exit:
    """Exit code 1 if there is no login in the end."""
    contract = build(file, {}, ())
    server = next((s for s in contract.mcp_servers if s.id == server_id), None)
    if server is None:
        known = ", ".join(s.id for s in contract.mcp_servers) or "none"
        raise CommandFailed(Exit.USAGE, f"{file} has no MCP server {server_id!r}; it has: {known}")
    if not isinstance(server, HttpServer) or not isinstance(server.auth, Login):
        raise CommandFailed(
            Exit.USAGE, f"{server_id} takes no login: its auth in {file} is not of the kind `login`"
        )
    network = RunNetwork()
    judge = GateJudge(Gate(policy_of(contract.policy)))
    session = network.session(f"login-{server_id}", judge, _allowed)

    async def show(page: str) -> None:
        click.echo(f"Log in here:\n{visible(page)}\n")
        click.echo("If the browser is on another machine, paste the address that it ends at.")
        if browser:
            webbrowser.open(page)

    try:
        async with asyncio.timeout(_WAIT_SECONDS), listening(port) as callback:
            with _pasting(callback):
                login, path = await log_in(
                    server, server.auth, Settings.from_env(), session, network.proxy.resolver,
                    callback, show,
                )  # fmt: skip
    except TimeoutError:
        raise CommandFailed(
            Exit.FAILED, f"nobody logged in within {_WAIT_SECONDS / 60:.0f} minutes"
        ) from None
    except McpFailure as error:
        raise CommandFailed(Exit.FAILED, f"{server_id}: {visible(str(error))}") from error
    except OSError as error:
        raise CommandFailed(Exit.FAILED, f"port {port} of 127.0.0.1: {error}") from error
    click.echo(f"Logged in at {visible(login.issuer)}. Kept in {path}")
    if login.refresh_token is None:
        click.echo("It can't be renewed: log in again when it is over.")
    return Exit.OK


async def _allowed(question: Question) -> bool:
    return click.confirm(f"Connect to {question.target}?", default=False)


@contextmanager
def _pasting(callback: Callback) -> Iterator[None]:
    """Take an address that a person pastes for the browser's return."""
    if not sys.stdin.isatty():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: callback.take(sys.stdin.readline().strip()))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            loop.remove_reader(sys.stdin)
