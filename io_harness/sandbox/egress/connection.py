"""One accepted connection: what it asks for, the decision, and the refusal or the relay."""

from __future__ import annotations

import base64
import binascii
import hmac
import http
from typing import assert_never

import h11

from io_harness.sandbox.egress import relay
from io_harness.sandbox.egress.audit import Via
from io_harness.sandbox.egress.decision import Allowed, Denied, Reason
from io_harness.sandbox.egress.hosts import Target
from io_harness.sandbox.egress.http1 import (
    Connect,
    Forward,
    WrongHost,
    read_origin_request,
    read_proxy_request,
)
from io_harness.sandbox.egress.limits import Role
from io_harness.sandbox.egress.reading import Refused, check_server_name, refusals, request_head
from io_harness.sandbox.egress.resolver import Resolver
from io_harness.sandbox.egress.session import LimitExceeded, Session
from io_harness.sandbox.egress.tls import ALERT_ACCESS_DENIED
from io_harness.sandbox.egress.wire import NotReached, Wire, dial
from io_harness.sandbox.log import get_logger

log = get_logger(__name__)

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Connection:
    """A client's connection, from its first byte to its end.

    Args:
        token: what the client must present, or None where the listener identifies it.
    """

    def __init__(self, wire: Wire, session: Session, resolver: Resolver, token: str | None) -> None:
        self._client = wire
        self._session = session
        self._resolver = resolver
        self._token = token
        self._via = Via.PROXY_HTTP
        self._client_speaks_tls = False

    async def run(self, role: Role) -> None:
        """Serve it. Every refusal leaves an audit row and, where it can be told, tells why."""
        try:
            match role:
                case Role.PROXY:
                    await self._proxy()
                case Role.HTTP:
                    self._via = Via.CAPTURED_HTTP
                    await self._plain(self._captured_target(80))
                case Role.TLS:
                    self._via = Via.CAPTURED_TLS
                    self._client_speaks_tls = True
                    await self._captured_tls()
                case Role.DNS:
                    raise ValueError("a DNS socket has no connections")
                case _:
                    assert_never(role)
        except Refused as refused:
            await self._refuse(refused)
        except (relay.Idle, relay.BadReply) as error:
            log.debug("connection ended", session=self._session.name, error=str(error))

    async def refuse_full(self, role: Role) -> None:
        """Turn it away because of the limit on connections."""
        self._client_speaks_tls = role is Role.TLS
        denied = Denied("", 0, Reason.LIMIT, detail="too many open connections")
        await self._refuse(Refused(denied, 503))

    async def _proxy(self) -> None:
        parser, request = await request_head(self._client, self._session.limits)
        if self._token is not None and not _authorised(request, self._token):
            denied = Denied("", 0, Reason.BAD_TOKEN, detail="no or wrong proxy credentials")
            raise Refused(denied, 407)
        with refusals():
            wanted = read_proxy_request(request)
        match wanted:
            case Connect(target):
                self._via = Via.CONNECT
                self._client.ahead = parser.trailing_data[0] + self._client.ahead
                await self._connect(target)
            case Forward(target):
                allowed = await self._allow(target)
                await self._exchange(allowed, await self._dial(allowed), parser, wanted)
            case _:
                assert_never(wanted)

    async def _connect(self, target: Target) -> None:
        allowed = await self._allow(target)
        if target.port == 80:
            # A tunnel to port 80 carries plain HTTP, which is held to the rules of plain HTTP.
            await self._client.send(_ESTABLISHED)
            await self._plain(target, allowed)
            return
        server = await self._dial(allowed)
        try:
            await self._client.send(_ESTABLISHED)
            if target.port == 443:
                self._client_speaks_tls = True
                await check_server_name(self._client, target, self._session.limits)
            await self._tunnel(allowed, server)
        finally:
            server.close()

    async def _captured_tls(self) -> None:
        target = self._captured_target(443)
        await check_server_name(self._client, target, self._session.limits)
        allowed = await self._allow(target)
        server = await self._dial(allowed)
        try:
            await self._tunnel(allowed, server)
        finally:
            server.close()

    def _captured_target(self, port: int) -> Target:
        """The name whose invented address the client has connected to."""
        here: str = self._client.sock.getsockname()[0]
        name = self._session.name_at(here)
        if name is None:
            raise Refused(Denied(here, port, Reason.UNKNOWN_ADDRESS))
        return Target(name, port)

    async def _plain(self, target: Target, allowed: Allowed | None = None) -> None:
        """One request in origin form, for a target that the connection itself has named."""
        parser, request = await request_head(self._client, self._session.limits)
        try:
            with refusals():
                forward = read_origin_request(request, target)
        except WrongHost as error:
            denied = Denied(target.host, target.port, Reason.HOST_MISMATCH, detail=str(error))
            raise Refused(denied) from error
        allowed = allowed or await self._allow(target)
        await self._exchange(allowed, await self._dial(allowed), parser, forward)

    async def _allow(self, target: Target) -> Allowed:
        if self._session.used_up:
            # Otherwise each new connection could carry out one more head.
            detail = f"the run's network total of {self._session.limits.total_bytes} bytes"
            raise Refused(Denied(target.host, target.port, Reason.LIMIT, detail=detail))
        decision = await self._session.decide(target.host, target.port, self._resolver)
        if isinstance(decision, Denied):
            raise Refused(decision)
        return decision

    async def _dial(self, allowed: Allowed) -> Wire:
        limits = self._session.limits
        port, addresses = allowed.target.port, allowed.addresses[: limits.addresses]
        try:
            return await dial(addresses, port, limits.connect_seconds)
        except NotReached as error:
            self._session.audit.record(self._via, allowed, f"not reached: {error}")
            await self._say(502, f"{allowed.target} was not reached: {error}")
            raise ConnectionAbortedError(str(error)) from error

    async def _exchange(
        self, allowed: Allowed, server: Wire, parser: h11.Connection, request: Forward
    ) -> None:
        self._session.audit.record(self._via, allowed)
        try:
            await relay.exchange(self._client, server, parser, request, self._session)
            await self._client.linger()
        except (relay.BadReply, relay.Idle) as error:
            if parser.our_state is not h11.SEND_RESPONSE:
                raise  # The client has a part of the reply already.
            await self._say(504 if isinstance(error, relay.Idle) else 502, str(error))
        except h11.RemoteProtocolError:
            self._break_off(allowed.target, Reason.BAD_REQUEST, "a malformed body")
        except LimitExceeded as error:
            self._break_off(allowed.target, Reason.LIMIT, str(error))
        finally:
            server.close()

    async def _tunnel(self, allowed: Allowed, server: Wire) -> None:
        self._session.audit.record(self._via, allowed)
        try:
            await relay.tunnel(self._client, server, self._session)
        except LimitExceeded as error:
            self._break_off(allowed.target, Reason.LIMIT, str(error))

    def _break_off(self, target: Target, reason: Reason, detail: str) -> None:
        denied = Denied(target.host, target.port, reason, detail=f"{detail}; connection ended")
        self._session.audit.record(self._via, denied)

    async def _refuse(self, refused: Refused) -> None:
        self._session.audit.record(self._via, refused.denied)
        await self._say(refused.status, str(refused.denied))

    async def _say(self, status: int, text: str) -> None:
        """Tell the client, in the language that it speaks at this point, and end the connection."""
        data = ALERT_ACCESS_DENIED if self._client_speaks_tls else _response(status, text)
        await self._client.send(data)
        await self._client.linger()


def _response(status: int, text: str) -> bytes:
    body = f"egress proxy: {text}\n".encode("utf-8", "backslashreplace")
    lines = [
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if status == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        lines.append('Proxy-Authenticate: Basic realm="egress"')
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _authorised(request: h11.Request, token: str) -> bool:
    given = [value for name, value in request.headers if name == b"proxy-authorization"]
    if len(given) != 1:
        return False
    scheme, _, encoded = given[0].partition(b" ")
    try:
        _, _, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return False
    return scheme.lower() == b"basic" and hmac.compare_digest(password, token.encode("ascii"))
