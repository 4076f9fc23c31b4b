"""The harness's own HTTP connections under the same decision.

`EgressTransport` is an httpx transport. Each new connection is decided on by its host and port,
and only the pinned addresses are dialled; the certificate is still checked against the name.
Environment proxies are not used, since httpx ignores them where a transport is given.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import cast

import httpcore
import httpx

from io_harness.sandbox.egress.audit import Via
from io_harness.sandbox.egress.decision import Denied, Reason, by_verdict
from io_harness.sandbox.egress.hosts import BadHost, Target, canonical_host
from io_harness.sandbox.egress.resolver import Resolver
from io_harness.sandbox.egress.rules import Effect
from io_harness.sandbox.egress.session import Session

_PORTS = {"http": 80, "https": 443}


class EgressRefused(Exception):
    """The decision was no. Not an httpx error: it must not be taken for a lost connection."""

    def __init__(self, denied: Denied) -> None:
        super().__init__(str(denied))
        self.denied = denied


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Decides before it dials, and dials only what the decision pinned.

    Raises EgressRefused out of the request that needed the connection.
    """

    def __init__(self, session: Session, resolver: Resolver) -> None:
        self._session = session
        self._resolver = resolver
        self._inner = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        decision = await self._session.decide(host, port, self._resolver)
        if isinstance(decision, Denied):
            self._session.audit.record(Via.CLIENT, decision)
            raise EgressRefused(decision)
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in decision.addresses[: self._session.limits.addresses]:
            try:
                stream = await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                self._session.audit.record(Via.CLIENT, decision)
                return stream
        self._session.audit.record(Via.CLIENT, decision, f"not reached: {failure}")
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("egress goes over TCP only")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class EgressTransport(httpx.AsyncHTTPTransport):
    """An httpx transport for one session's rules, limits on addresses, and audit log."""

    def __init__(
        self,
        session: Session,
        resolver: Resolver,
        *,
        verify: ssl.SSLContext | bool = True,
        http2: bool = False,
        limits: httpx.Limits | None = None,
    ) -> None:
        pool = limits or httpx.Limits(max_connections=100, max_keepalive_connections=20)
        super().__init__(verify=verify, http2=http2)
        self._session = session
        # httpx has no parameter for the backend; the pool that it made is replaced by its like.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(verify=verify, trust_env=False),
            max_connections=pool.max_connections,
            max_keepalive_connections=pool.max_keepalive_connections,
            keepalive_expiry=pool.keepalive_expiry,
            http1=True,
            http2=http2,
            network_backend=PinnedBackend(session, resolver),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. A kept connection was decided on earlier; a deny since then counts.

        Raises:
            EgressRefused: the decision is no.
        """
        url = request.url
        try:
            target = Target(canonical_host(url.host), url.port or _PORTS[url.scheme])
        except (BadHost, KeyError) as error:
            denied = Denied(url.host[:253], url.port or 0, Reason.BAD_HOST, detail=str(error))
        else:
            verdict = self._session.rules.judge(target)
            if verdict.effect is not Effect.DENY:
                return await super().handle_async_request(request)
            denied = by_verdict(target, verdict)
        self._session.audit.record(Via.CLIENT, denied)
        raise EgressRefused(denied)
