"""Accepting connections, and how many may be open."""

from __future__ import annotations

import asyncio
import socket

from io_harness.sandbox.egress.connection import Connection
from io_harness.sandbox.egress.limits import Role
from io_harness.sandbox.egress.resolver import Resolver
from io_harness.sandbox.egress.session import Session
from io_harness.sandbox.egress.wire import Wire
from io_harness.sandbox.log import get_logger

log = get_logger(__name__)

_PAUSE_WHEN_FULL = 0.01


class Listeners:
    """Serves listening sockets; counts the connections of all of them."""

    def __init__(self, resolver: Resolver, max_connections: int) -> None:
        self._resolver = resolver
        self._max = max_connections
        self._open = 0

    async def accept(
        self, sock: socket.socket, session: Session, role: Role, token: str | None
    ) -> None:
        """Serve a listening, non-blocking socket until cancelled, then end its connections."""
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    peer, _ = await loop.sock_accept(sock)
                except OSError as error:
                    # Out of descriptors, or the peer has already gone: neither ends the listener.
                    log.warning("connection not accepted", error=str(error))
                    await asyncio.sleep(_PAUSE_WHEN_FULL)
                    continue
                task = loop.create_task(self._admit(peer, session, role, token))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                # Accepting doesn't wait while connections are pending; a flood of those that will
                # be turned away must not take the loop from everyone else.
                await asyncio.sleep(_PAUSE_WHEN_FULL if self._full(session) else 0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _full(self, session: Session) -> bool:
        return (
            self._open >= self._max or session.usage.open_connections >= session.limits.connections
        )

    async def _admit(
        self, sock: socket.socket, session: Session, role: Role, token: str | None
    ) -> None:
        wire = Wire(sock)
        connection = Connection(wire, session, self._resolver, token)
        full = self._full(session)
        self._open += 1
        session.usage.open_connections += 1
        try:
            await (connection.refuse_full(role) if full else connection.run(role))
        except OSError as error:
            log.debug("connection broke", session=session.name, error=str(error))
        except Exception:
            log.exception("connection failed", session=session.name)
        finally:
            wire.close()
            self._open -= 1
            session.usage.open_connections -= 1
