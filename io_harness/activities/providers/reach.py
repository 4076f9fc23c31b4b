"""How the worker reaches a model's provider: by the decision that commands get, under one policy."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from io_harness.activities.egress import PolicyJudge, with_provider
from io_harness.activities.network import RunNetwork
from io_harness.sandbox.egress import BadHost, Effect, Question, Target, canonical_host
from io_harness.sandbox.egress.client import EgressTransport
from io_harness.workflows.contract import Model
from io_harness.workflows.policy import Policy

from .registry import ModelConfigError, base_url_of
from .wire import Wire

_KEPT = 256
_IDLE_SECONDS = 300.0


@dataclass(frozen=True)
class Reach:
    """Where a model's provider listens, and who decides about the connection."""

    target: Target
    judge: PolicyJudge

    @property
    def denial(self) -> str | None:
        """Why the policy forbids it; None where it doesn't. Only a rule can: what denies, or asks, by
        default or by rule is answered by the person who named the model in the contract."""
        verdict = self.judge.judge(self.target)
        if verdict.effect is not Effect.DENY:
            return None
        return f"{self.target} is denied by the rule {verdict.rule!r} of layer {verdict.layer!r}"


def reach_of(model: Model, policy: Policy) -> Reach | None:
    """None for a provider without an address. An address that the contract itself writes out as
    `base_url` is reached wherever it leads, also on loopback or in a private network; one that is
    usual for a provider passes the table of addresses as every other does.

    Raises:
        ModelConfigError: the address can't be read.
    """
    url = base_url_of(model)
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        target = Target(canonical_host(parts.hostname or ""), port)
    except (BadHost, ValueError) as error:
        raise ModelConfigError("MissingBaseUrl", f"model.base_url {url!r}: {error}") from error
    written = frozenset({target} if model.base_url is not None else ())
    return Reach(target, PolicyJudge(with_provider(policy, target), written))


@dataclass
class _Kept:
    wire: Wire
    judge: PolicyJudge
    users: int = 0
    used: float = 0.0


class ProviderWires:
    """The HTTP clients of a worker, one per run and provider, so that a kept connection is one that
    this run's policy allowed."""

    def __init__(self, network: RunNetwork) -> None:
        self._network = network
        self._kept: OrderedDict[tuple[str, Target], _Kept] = OrderedDict()
        self._trust = httpx.create_ssl_context()
        self._plain = Wire()

    @asynccontextmanager
    async def wire(self, run_key: str, reach: Reach | None) -> AsyncIterator[Wire]:
        """The client for one call."""
        if reach is None:
            yield self._plain
            return
        # Before the call: what goes wrong in it then costs nothing.
        for idle in self._taken():
            await idle.wire.aclose()
        key = (run_key, reach.target)
        kept = self._kept.get(key)
        if kept is None or kept.judge != reach.judge:
            kept = self._kept[key] = _Kept(self._make(run_key, reach), reach.judge)
        self._kept.move_to_end(key)
        kept.users += 1
        try:
            yield kept.wire
        finally:
            kept.users -= 1
            kept.used = time.monotonic()

    async def aclose(self) -> None:
        while self._kept:
            _, kept = self._kept.popitem()
            await kept.wire.aclose()
        await self._plain.aclose()

    def _make(self, run_key: str, reach: Reach) -> Wire:
        async def answer(question: Question) -> bool:
            return question.target == reach.target

        session = self._network.session(run_key, reach.judge, answer)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        resolver = self._network.proxy.resolver
        return Wire(EgressTransport(session, resolver, verify=self._trust, limits=limits))

    def _taken(self) -> list[_Kept]:
        """Those that nobody uses and that are too many or too old, out of the table: while one is
        closed, other calls begin and end."""
        now = time.monotonic()
        idle = [key for key, kept in self._kept.items() if not kept.users]
        return [
            self._kept.pop(key)
            for place, key in enumerate(idle)
            if len(idle) - place > _KEPT or now - self._kept[key].used > _IDLE_SECONDS
        ]
