"""Tells the server that an activity lives; that is also how a cancellation reaches it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from temporalio import activity

BEAT_SECONDS = 1.0


@contextlib.asynccontextmanager
async def heartbeating() -> AsyncIterator[Callable[[str], None]]:
    """Beat after every second for which the body runs, with the last line of progress that it told by
    calling what it is given. A cancellation ends the body as `CancelledError`. What ends within a
    second costs the server no heartbeat, which it would write to its database."""
    told: list[str] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            activity.heartbeat(*told)

    def progress(text: str) -> None:
        told[:] = [text]

    beats = asyncio.create_task(beat())
    try:
        yield progress
    finally:
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats
