"""What the proxy knows about one run."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from io_harness.sandbox.egress.asking import SharedAsk
from io_harness.sandbox.egress.audit import AuditLog, AuditRow
from io_harness.sandbox.egress.decision import Ask, Decision, decide
from io_harness.sandbox.egress.hosts import Host
from io_harness.sandbox.egress.limits import EgressLimits
from io_harness.sandbox.egress.resolver import Resolver
from io_harness.sandbox.egress.rules import Judge

_FIRST_INVENTED = int(ipaddress.IPv4Address("127.1.0.1"))


class LimitExceeded(Exception):
    """A bound of the session was reached; the message names it."""


@dataclass(slots=True)
class Usage:
    """What is used of the limits on connections and bytes: by one session, or by several of a run that
    share it. "Up" leaves the run."""

    open_connections: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Session:
    """The rules, counters and audit rows of one run or of one of its commands.

    Attributes:
        name: shown in audit rows; the run's id is a good one.
        rules: read anew for every request; assign to change them.
        token: what a client must present to a loopback listener of this session.
        audit: the decisions.
        usage: what is used of the limits.
    """

    def __init__(
        self,
        name: str,
        rules: Judge,
        *,
        ask: Ask | None = None,
        limits: EgressLimits | None = None,
        on_row: Callable[[AuditRow], None] | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.rules: Judge = rules
        self.limits = limits or EgressLimits()
        self.token = secrets.token_urlsafe(32)
        self.audit = AuditLog(name, self.limits.audit_rows, on_row)
        self.usage = usage or Usage()
        self._ask = SharedAsk(ask) if ask is not None else None
        self._address_of: dict[Host, str] = {}
        self._name_at: dict[str, Host] = {}

    async def decide(self, host: str, port: int, resolver: Resolver) -> Decision:
        """`decision.decide` with this session's rules, question and limits."""
        return await decide(
            host,
            port,
            lambda: self.rules,
            resolver,
            ask=self._ask,
            ask_seconds=self.limits.ask_seconds,
            resolve_seconds=self.limits.resolve_seconds,
        )

    def spend(self, up: int = 0, down: int = 0) -> None:
        """Count transferred bytes.

        Raises:
            LimitExceeded: the session's total is used up.
        """
        self.usage.bytes_up += up
        self.usage.bytes_down += down
        if self.used_up:
            raise LimitExceeded(f"the run's network total of {self.limits.total_bytes} bytes")

    @property
    def used_up(self) -> bool:
        """Whether more was transferred than the session may."""
        return self.usage.bytes_up + self.usage.bytes_down > self.limits.total_bytes

    def invent_address(self, host: Host) -> str | None:
        """The 127.1.x.y address that stands for the name inside, or None when no more are left."""
        if (known := self._address_of.get(host)) is not None:
            return known
        if len(self._address_of) >= self.limits.names:
            return None
        address = str(ipaddress.IPv4Address(_FIRST_INVENTED + len(self._address_of)))
        self._address_of[host] = address
        self._name_at[address] = host
        return address

    def name_at(self, address: str) -> Host | None:
        """The name that an invented address stands for."""
        return self._name_at.get(address)
