"""The one function that decides whether a connection may be made, and to which addresses.

Order: canonical host, deny rules, ask rules, allow rules, default; then the name is resolved once
and every answer must pass the address table. The caller dials the pinned addresses and no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from io_harness.sandbox.egress.addresses import refusal
from io_harness.sandbox.egress.hosts import (
    Address,
    BadHost,
    Host,
    Target,
    address_of,
    canonical_host,
)
from io_harness.sandbox.egress.resolver import NotResolved, Resolver
from io_harness.sandbox.egress.rules import Effect, Judge, Verdict
from io_harness.sandbox.log import get_logger

log = get_logger(__name__)

RESOLVE_SECONDS = 5.0
ASK_SECONDS = 300.0


class Reason(StrEnum):
    """Why a connection was refused."""

    BAD_HOST = "bad_host"
    BAD_REQUEST = "bad_request"
    DENIED_BY_RULE = "denied_by_rule"
    NO_RULE = "no_rule"
    ASK_REFUSED = "ask_refused"
    ASK_TIMED_OUT = "ask_timed_out"
    ASK_FAILED = "ask_failed"
    NOT_RESOLVED = "not_resolved"
    RESOLVE_TIMED_OUT = "resolve_timed_out"
    ADDRESS_REFUSED = "address_refused"
    NOT_TLS = "not_tls"
    SNI_MISMATCH = "sni_mismatch"
    HOST_MISMATCH = "host_mismatch"
    UNKNOWN_ADDRESS = "unknown_address"
    BAD_TOKEN = "bad_token"
    LIMIT = "limit"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The connection may be made, to these addresses only.

    Attributes:
        verdict: by which rule of which layer.
        asked: a person or policy outside was asked and said yes.
        addresses: what the name resolved to, all of which passed the address table.
    """

    target: Target
    verdict: Verdict
    asked: bool
    addresses: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class Denied:
    """The connection may not be made.

    Attributes:
        host, port: as asked for; the host is raw text (at most 253 characters) if it is no host.
        verdict: by which rule of which layer, where it came to that.
        detail: what a reader needs besides the reason, such as the refused address.
    """

    host: str
    port: int
    reason: Reason
    verdict: Verdict | None = None
    detail: str = ""

    def __str__(self) -> str:
        cause = self.reason.value.replace("_", " ")
        rule = f" ({self.verdict})" if self.verdict and self.verdict.rule else ""
        detail = f": {self.detail}" if self.detail else ""
        where = f"{self.host}:{self.port}" if self.host else "request"
        return f"{where} refused, {cause}{detail}{rule}"


Decision = Allowed | Denied


@dataclass(frozen=True, slots=True)
class Question:
    """Put to whoever may approve: may this target be reached? The verdict says which rule asks."""

    target: Target
    verdict: Verdict


Ask = Callable[[Question], Awaitable[bool]]
"""Answers a question. True approves the connections that wait for the answer; to approve later ones
too, change the rules."""


async def decide(
    host: str,
    port: int,
    rules: Judge | Callable[[], Judge],
    resolver: Resolver,
    *,
    ask: Ask | None = None,
    ask_seconds: float = ASK_SECONDS,
    resolve_seconds: float = RESOLVE_SECONDS,
) -> Decision:
    """Decide about one connection.

    Args:
        host: any spelling; brought to its canonical one first.
        rules: the rules, or a function that reads the present ones. They are read again after a
            question was answered, so that a deny added meanwhile beats the approval.
        ask: asked when an ask rule (or the default) says so; without it such a target is denied.
        ask_seconds: how long an answer may take; then the target is denied.
        resolve_seconds: how long the resolver may take.
    """
    try:
        target = Target(canonical_host(host), port)
    except BadHost as error:
        return Denied(host[:253], port, Reason.BAD_HOST, detail=str(error))
    read: Callable[[], Judge] = rules if callable(rules) else lambda: rules
    verdict = read().judge(target)
    asked = False
    if verdict.effect is Effect.ASK:
        if refused := await _put(Question(target, verdict), ask, ask_seconds):
            return Denied(target.host, port, refused, verdict)
        asked = True
        verdict = read().judge(target)
    match verdict.effect:
        case Effect.DENY:
            return by_verdict(target, verdict)
        case Effect.ALLOW | Effect.ASK:
            return await _pin(target, verdict, asked, read(), resolver, resolve_seconds)
        case _:
            assert_never(verdict.effect)


def by_verdict(target: Target, verdict: Verdict) -> Denied:
    """The refusal of a target that the verdict denies."""
    reason = Reason.DENIED_BY_RULE if verdict.rule else Reason.NO_RULE
    return Denied(target.host, target.port, reason, verdict)


async def _put(question: Question, ask: Ask | None, seconds: float) -> Reason | None:
    if ask is None:
        return Reason.ASK_REFUSED
    try:
        async with asyncio.timeout(seconds):
            approved = await ask(question)
    except TimeoutError:
        return Reason.ASK_TIMED_OUT
    except Exception:
        log.exception("asking failed; the connection is refused", target=str(question.target))
        return Reason.ASK_FAILED
    return None if approved is True else Reason.ASK_REFUSED


async def _pin(
    target: Target,
    verdict: Verdict,
    asked: bool,
    rules: Judge,
    resolver: Resolver,
    seconds: float,
) -> Decision:
    try:
        addresses = await _resolve(target.host, resolver, seconds)
    except TimeoutError:
        return Denied(
            target.host,
            target.port,
            Reason.RESOLVE_TIMED_OUT,
            verdict,
            f"no answer in {seconds:g} s",
        )
    except NotResolved as error:
        return Denied(target.host, target.port, Reason.NOT_RESOLVED, verdict, str(error))
    for address in addresses:
        if why := refusal(address, rules.opens(target)):
            detail = f"{address} is {why}"
            return Denied(target.host, target.port, Reason.ADDRESS_REFUSED, verdict, detail)
    return Allowed(target, verdict, asked, addresses)


async def _resolve(host: Host, resolver: Resolver, seconds: float) -> tuple[Address, ...]:
    literal = address_of(host)
    if literal is not None:
        return (literal,)
    async with asyncio.timeout(seconds):
        addresses = tuple(dict.fromkeys(await resolver.resolve(host)))
    if not addresses:
        raise NotResolved(f"{host} has no address")
    return addresses
