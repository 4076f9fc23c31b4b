"""What a run may reach: rules, the layer that each came from, and what holds without a match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from io_harness.sandbox.egress.addresses import Network
from io_harness.sandbox.egress.hosts import (
    BadHost,
    Host,
    Target,
    address_of,
    canonical_host,
    canonical_port,
)

DEFAULT_PORTS = frozenset({80, 443})


class BadRule(ValueError):
    """A rule that cannot be read; the message quotes it and says what to write."""


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about a target before its name is resolved.

    Attributes:
        rule: the rule that decided, as text; None when none matched.
        layer: where the rule, or what holds without one, came from.
    """

    effect: Effect
    rule: str | None = None
    layer: str | None = None

    def __str__(self) -> str:
        return f"rule: {self.rule or 'none'}, layer: {self.layer or 'none'}"


class Judge(Protocol):
    """What decides about hosts: `Rules`, or a policy that the caller already has."""

    def opens(self, target: Target) -> tuple[Network, ...]:
        """Networks that the address table would refuse and that the target may lead to all the same."""
        ...

    def judge(self, target: Target) -> Verdict:
        """The verdict on a host and port. Pure: the same target, the same verdict."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One host pattern and its effect. Made by `Rule.parse`.

    Attributes:
        effect: what a match means.
        host: the canonical host, or None for every host (`*`).
        subdomains: the pattern began with `*.`: names below `host` match, `host` itself does not.
        ports: the ports that match, or None for every port.
        layer: where the rule came from ("run", "provider", ...); named in refusals and audit rows.
    """

    effect: Effect
    host: Host | None
    subdomains: bool
    ports: frozenset[int] | None
    layer: str

    @classmethod
    def parse(cls, effect: Effect, text: str, layer: str = "run") -> Rule:
        """Read `host`, `*.domain` or `*`, each with an optional `:port` or `:*`.

        Without a port an allow rule covers 80 and 443, an ask or deny rule every port.

        Raises:
            BadRule: with the rule and what is wrong with it.
        """
        host_text, port_text = _split(text)
        if port_text is None:
            ports = DEFAULT_PORTS if effect is Effect.ALLOW else None
        elif port_text == "*":
            ports = None
        else:
            try:
                ports = frozenset({canonical_port(port_text)})
            except BadHost as error:
                raise BadRule(f"network rule {text!r}: {error}") from error
        if host_text == "*":
            return cls(effect, None, False, ports, layer)
        subdomains = host_text.startswith("*.")
        try:
            host = canonical_host(host_text.removeprefix("*."))
        except BadHost as error:
            raise BadRule(
                f"network rule {text!r}: {error}; write a host name, '*.domain' or '*', "
                "without scheme or path, with an optional ':port'"
            ) from error
        if subdomains and address_of(host) is not None:
            raise BadRule(f"network rule {text!r}: '*.' goes before a domain name, not an address")
        return cls(effect, host, subdomains, ports, layer)

    def matches(self, target: Target) -> bool:
        if self.ports is not None and target.port not in self.ports:
            return False
        if self.host is None:
            return True
        if self.subdomains:
            return address_of(target.host) is None and target.host.endswith(f".{self.host}")
        return target.host == self.host

    def __str__(self) -> str:
        host = "*" if self.host is None else f"[{self.host}]" if ":" in self.host else self.host
        name = f"*.{host}" if self.subdomains else host
        if self.ports == DEFAULT_PORTS:
            return f"{self.effect} {name}"
        return f"{self.effect} {name}:{'*' if self.ports is None else min(self.ports)}"


@dataclass(frozen=True, slots=True)
class Rules:
    """All that decides about a host. A matching deny wins, then ask, then allow, then `default`.

    The order of the rules and how specific they are do not count.

    Attributes:
        opened: networks that the address table would refuse and that were opened by name.
    """

    rules: tuple[Rule, ...] = ()
    default: Effect = Effect.DENY
    opened: tuple[Network, ...] = ()

    def opens(self, target: Target) -> tuple[Network, ...]:
        """`opened`, whatever the target."""
        return self.opened

    def judge(self, target: Target) -> Verdict:
        """The effect on a target and the rule that caused it."""
        for effect in (Effect.DENY, Effect.ASK, Effect.ALLOW):
            for rule in self.rules:
                if rule.effect is effect and rule.matches(target):
                    return Verdict(effect, str(rule), rule.layer)
        return Verdict(self.default)

    @classmethod
    def allowing(cls, *hosts: str, layer: str = "run", opened: tuple[Network, ...] = ()) -> Rules:
        """Rules that allow the named hosts and deny the rest."""
        return cls(tuple(Rule.parse(Effect.ALLOW, h, layer) for h in hosts), opened=opened)


def _split(text: str) -> tuple[str, str | None]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, None
    if ":" in host and not host.startswith("["):
        # An IPv6 address without brackets: its last group is no port.
        return text, None
    return host, port
