"""From a name to addresses: once per decision."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from io_harness.sandbox.egress.hosts import Address, Host


class NotResolved(Exception):
    """The name has no address, or the resolver said that it can't tell."""


class Resolver(Protocol):
    """Finds all addresses of a name, in the order in which to try them."""

    async def resolve(self, host: Host) -> Sequence[Address]:
        """Raises NotResolved when there are none."""
        ...


class SystemResolver:
    """The host's own resolver (`getaddrinfo`), as any program on the host would use it.

    It runs in threads of its own: a name server that hangs must not use up those that the rest of
    the process needs. `getaddrinfo` can't be interrupted, so that a lookup given up on keeps its
    thread until the system's own time-out; `threads` of them can hang at once. The threads end with
    the object.
    """

    def __init__(self, threads: int = 16) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="egress-resolver")

    async def resolve(self, host: Host) -> tuple[Address, ...]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, _lookup, host)
        except (OSError, UnicodeError) as error:
            raise NotResolved(f"{host}: {error}") from error
        return found


def _lookup(host: Host) -> tuple[Address, ...]:
    rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(ipaddress.ip_address(row[4][0]) for row in rows)
