"""Resolvers at the edge: the answers of a name server that the tests control."""

import asyncio
import ipaddress
from collections.abc import Sequence

from io_harness.sandbox.egress.hosts import Address, Host
from io_harness.sandbox.egress.resolver import NotResolved


class Answers:
    """Answers from a table; a list of lists answers each query with the next one."""

    def __init__(self, table: dict[str, Sequence[str] | list[list[str]]]) -> None:
        self._table = table
        self.asked: list[str] = []

    async def resolve(self, host: Host) -> Sequence[Address]:
        seen = self.asked.count(host)
        self.asked.append(host)
        rows = self._table.get(host)
        if rows is None:
            raise NotResolved(f"{host}: no such name")
        if rows and isinstance(rows[0], list):
            rows = rows[min(seen, len(rows) - 1)]
        return [ipaddress.ip_address(str(row)) for row in rows]


class Hanging:
    """Never answers."""

    async def resolve(self, host: Host) -> Sequence[Address]:
        await asyncio.Event().wait()
        return ()
