"""Who may use a run's working copy on this worker: readers of one snapshot together, or one writer.

The workflow orders calls; this guards against an attempt that Temporal gave up but that still runs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class _Holders:
    base: str | None = None
    """Snapshot that the readers use; None while a writer holds the copy, or nobody."""
    readers: int = 0
    writing: bool = False
    waiting: int = 0


class CopyLocks:
    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._copies: dict[str, _Holders] = {}

    @asynccontextmanager
    async def reading(self, run_key: str, base: str) -> AsyncIterator[None]:
        """Hold the copy beside other readers of the same snapshot."""
        holders = self._of(run_key)
        async with self._entry(holders):
            await self._changed.wait_for(
                lambda: not holders.writing and (not holders.readers or holders.base == base)
            )
            holders.base = base
            holders.readers += 1
        try:
            yield
        finally:
            holders.readers -= 1
            await self._leave(run_key, holders)

    @asynccontextmanager
    async def writing(self, run_key: str) -> AsyncIterator[None]:
        """Hold the copy alone."""
        holders = self._of(run_key)
        async with self._entry(holders):
            await self._changed.wait_for(lambda: not holders.writing and not holders.readers)
            holders.writing = True
        try:
            yield
        finally:
            holders.writing = False
            await self._leave(run_key, holders)

    def _of(self, run_key: str) -> _Holders:
        return self._copies.setdefault(run_key, _Holders())

    @asynccontextmanager
    async def _entry(self, holders: _Holders) -> AsyncIterator[None]:
        async with self._changed:
            holders.waiting += 1
            try:
                yield
            finally:
                holders.waiting -= 1

    async def _leave(self, run_key: str, holders: _Holders) -> None:
        async with self._changed:
            if not (holders.readers or holders.writing or holders.waiting):
                self._copies.pop(run_key, None)
            self._changed.notify_all()
