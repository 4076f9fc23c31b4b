"""The connections of a worker: one per run and server, closed when the run ends or is idle."""

import asyncio
import contextlib
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.workflows.mcp_contract import StdioServer

from .errors import NotStarted
from .opening import Place, open_streams

if TYPE_CHECKING:
    from .catalogue import Listed, Server
    from .connection import Connection

IDLE_SECONDS = 600.0
"""A connection that is not used for so long is closed; the next call opens it again."""
_LOOK_SECONDS = 30.0

_Key = tuple[str, str]


class Pool:
    """One per worker and event loop."""

    def __init__(
        self, settings: Settings, network: RunNetwork, *, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._settings = settings
        self._network = network
        self._idle_seconds = idle_seconds
        self._open: dict[_Key, Connection] = {}
        self._places: dict[_Key, tuple[int, int] | None] = {}
        self._locks: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reaper: asyncio.Task[None] | None = None

    async def connection(self, server: "Server", place: Place) -> "Connection":
        """The open connection, or a new one. Whether it may be opened the caller has asked the gate.

        Raises:
            NotStarted, MissingCredential
        """
        key = (place.run_key, server.id)
        async with self._locks[key]:
            found = self._open.get(key)
            if found is not None and not (
                found.alive and self._places[key] == _identity(server, place)
            ):
                await self._drop(key)
                found = None
            if found is None:
                found = await self._connect(server, place)
                self._open[key] = found
                self._places[key] = _identity(server, place)
                self._start_reaper()
            found.used = asyncio.get_running_loop().time()
            return found

    async def listed(self, server: "Server", place: Place) -> "Listed":
        """The server's tools, over the connection that the run's calls then use.

        Raises:
            NotStarted, MissingCredential, McpFailure
        """
        connection = await self.connection(server, place)
        connection.known = True
        return await connection.list_tools()

    async def again(self, server: "Server", place: Place) -> "Connection":
        """A new connection in place of one that is of no more use."""
        key = (place.run_key, server.id)
        async with self._locks[key]:
            await self._drop(key)
        return await self.connection(server, place)

    def stale(self, run_key: str) -> bool:
        """Whether a connected server of the run said that its list changed."""
        return any(c.stale for (run, _), c in self._open.items() if run == run_key)

    async def close_run(self, run_key: str) -> None:
        """Close the run's connections and end its servers."""
        await self._close([key for key in self._open if key[0] == run_key])

    async def aclose(self) -> None:
        """Close everything, within a bound."""
        if self._reaper is not None:
            self._reaper.cancel()
            await asyncio.wait({self._reaper})
            self._reaper = None
        await self._close(list(self._open))

    @property
    def size(self) -> int:
        """How many connections are open."""
        return len(self._open)

    async def _connect(self, server: "Server", place: Place) -> "Connection":
        # The client takes a second to import, and a worker may never need it.
        from .connection import Connection

        streams = partial(open_streams, server, place, self._settings, self._network)
        connection = Connection(server, streams)
        try:
            await connection.open()
        except NotStarted:
            # Some old servers end when they are asked for the newer revision.
            if not connection.link.gave_up:
                raise
            connection = Connection(server, streams)
            await connection.open(handshake=True)
        return connection

    async def _close(self, keys: list[_Key]) -> None:
        async def close(key: _Key) -> None:
            async with self._locks[key]:
                await self._drop(key)
            self._locks.pop(key, None)

        await asyncio.gather(*(close(key) for key in keys))

    async def _drop(self, key: _Key) -> None:
        self._places.pop(key, None)
        connection = self._open.pop(key, None)
        if connection is not None:
            await connection.close()

    def _start_reaper(self) -> None:
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.create_task(self._reap(), name="mcp-idle")

    async def _reap(self) -> None:
        while self._open:
            await asyncio.sleep(min(_LOOK_SECONDS, self._idle_seconds))
            now = asyncio.get_running_loop().time()
            idle = [
                k for k, c in self._open.items() if now - c.used > self._idle_seconds and not c.busy
            ]
            with contextlib.suppress(OSError):
                await self._close(idle)


def _identity(server: "Server", place: Place) -> tuple[int, int] | None:
    """Which directory the server sees as its workspace: a copy made afresh is another one."""
    if not isinstance(server, StdioServer) or server.workspace == "none":
        return None
    found = place.root.stat()
    return found.st_dev, found.st_ino
