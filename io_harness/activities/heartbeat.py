"""Tells the server that an activity lives; that is also how a cancellation reaches it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from temporalio import activity

BEAT_SECONDS = 1.0


@contextlib.asynccontextmanager
async def heartbeating() -> AsyncIterator[None]:
    """Beat every second while the body runs. A cancellation ends the body as `CancelledError`."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT_SECONDS)

    beats = asyncio.create_task(beat())
    try:
        yield
    finally:
        beats.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beats
