"""Tells an orchestrator how a worker is, by a file: no port, and a probe of one `find`.

The file is written again every few seconds, so that an old one says that the process hangs. It holds
`ready`, or `unreachable` while the Temporal server gives no answer, and goes when the worker drains.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError

from .exits import CommandFailed, Exit

_BEAT_SECONDS = 5.0
_PATIENCE = timedelta(seconds=4)


@contextlib.asynccontextmanager
async def told_in(file: Path | None, client: Client) -> AsyncIterator[None]:
    """Keep the file for as long as the body runs.

    Raises:
        CommandFailed: USAGE; it can't be written.
    """
    if file is None:
        yield
        return
    _write(file, "ready")
    beating = asyncio.create_task(_beat(file, client))
    try:
        yield
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating
        file.unlink(missing_ok=True)


async def _beat(file: Path, client: Client) -> None:
    while True:
        await asyncio.sleep(_BEAT_SECONDS)
        _write(file, "ready" if await _answers(client) else "unreachable")


async def _answers(client: Client) -> bool:
    try:
        return await client.service_client.check_health(timeout=_PATIENCE)
    except RPCError:
        return False


def _write(file: Path, state: str) -> None:
    try:
        file.write_text(f"{state}\n")
    except OSError as error:
        raise CommandFailed(Exit.USAGE, f"--health-file: {error}") from error
