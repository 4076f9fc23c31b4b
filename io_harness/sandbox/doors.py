"""The proxy's door where a backend has no network namespace: a free port of the host's loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Self

from .log import get_logger
from .plan import Door, NetProxy, Plan

log = get_logger(__name__)


class LoopbackDoor:
    """The first door of a plan, open on 127.0.0.1 until closed. Any program of the host can come
    to it, so whoever serves it must know its own by what `NetProxy.variables` gave them."""

    def __init__(self, door: Door, listener: socket.socket, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.port: int = listener.getsockname()[1]
        self._serving = asyncio.create_task(serve(door, listener))

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """Opens the door; None when the plan has none."""
        if not isinstance(plan.net, NetProxy):
            return None
        door = plan.net.doors[0]
        listener = socket.create_server(("127.0.0.1", 0))
        return cls(door, listener, plan.net.variables(listener.getsockname()[1], False))

    async def close(self) -> None:
        """Ends what it serves. Raises what the serving raised before it was asked to end."""
        self._serving.cancel()
        await asyncio.wait({self._serving})
        if not self._serving.cancelled():
            self._serving.result()


async def serve(door: Door, listener: socket.socket) -> None:
    """Serves until cancelled. A failure is logged when it happens, since the command goes on and
    only finds nobody at the door."""
    with listener:
        try:
            await door.serve(listener)
        except Exception:
            log.exception("serving a port of a command failed", port=door.port)
            raise
