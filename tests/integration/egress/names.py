"""The names of the tests' world, and the rule sets that the cases refer to."""

import asyncio
import ipaddress
from collections.abc import Sequence

from io_harness.sandbox.egress import Address, Effect, Host, NotResolved, Rule, Rules
from tests.integration.egress.upstream import ALLOWED

_TABLE: dict[str, list[str]] = {
    "localhost": ["127.0.0.1", "::1"],
    "private.example": ["127.0.0.1"],
    "mixed.example": [ALLOWED, "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.2"],
    "nat64.example": ["64:ff9b::127.0.0.1"],
    "v6.example": ["::1"],
    "metadata.example": ["169.254.169.254"],
}


class Names:
    """Every `.example` name leads to the allowed server, but for those in the table."""

    async def resolve(self, host: Host) -> Sequence[Address]:
        if host == "hang.example":
            await asyncio.Event().wait()
        if host in _TABLE:
            return [ipaddress.ip_address(text) for text in _TABLE[host]]
        if host.endswith(".example") and host != "missing.example":
            return [ipaddress.ip_address(ALLOWED)]
        raise NotResolved(f"{host}: no such name")


def _rules(*texts: str, opened: Sequence[str]) -> Rules:
    parsed = [
        Rule.parse(Effect(effect), pattern)
        for effect, _, pattern in (text.partition(" ") for text in texts)
    ]
    return Rules(tuple(parsed), opened=tuple(map(ipaddress.ip_network, opened)))


_COMMON = ("deny bad.sub.example", "ask ask.example")
RULES = {
    "narrow": _rules(
        "allow a.example", "allow a.example:8080", "allow *.sub.example", *_COMMON,
        opened=[f"{ALLOWED}/32"],
    ),
    "wide": _rules("allow *:*", *_COMMON, opened=[f"{ALLOWED}/32"]),
    "open": _rules("allow *:*", opened=["127.0.0.0/8"]),
}  # fmt: skip


def allow(*patterns: str) -> Rules:
    """Rules that allow the patterns, with the allowed server's address opened."""
    return _rules(*(f"allow {pattern}" for pattern in patterns), opened=[f"{ALLOWED}/32"])
