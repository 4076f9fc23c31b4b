"""The first bytes of a connection: an HTTP request head or a TLS ClientHello, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import h11

from io_harness.sandbox.egress.decision import Denied, Reason
from io_harness.sandbox.egress.hosts import BadHost, Target, address_of
from io_harness.sandbox.egress.http1 import BARE_LF, BadRequest, check_head
from io_harness.sandbox.egress.limits import EgressLimits
from io_harness.sandbox.egress.tls import NotClientHello, hello_in, server_name
from io_harness.sandbox.egress.wire import Wire


class Refused(Exception):
    """The request is refused: the decision, and the HTTP status that tells the client."""

    def __init__(self, denied: Denied, status: int = 403) -> None:
        super().__init__(str(denied))
        self.denied = denied
        self.status = status


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what is wrong with a request into its refusal."""
    try:
        yield
    except BadHost as error:
        raise Refused(Denied("", 0, Reason.BAD_HOST, detail=str(error)), 400) from error
    except BadRequest as error:
        raise Refused(Denied("", 0, Reason.BAD_REQUEST, detail=str(error)), 400) from error
    except h11.RemoteProtocolError as error:
        # h11 quotes the offending line, which may hold a path or a header.
        status = error.error_status_hint
        denied = Denied("", 0, Reason.BAD_REQUEST, detail="malformed HTTP/1 request")
        raise Refused(denied, status) from error


async def request_head(wire: Wire, limits: EgressLimits) -> tuple[h11.Connection, h11.Request]:
    """Read one request head; the parser keeps what came after it.

    Raises:
        Refused: malformed, too long or too slow.
        ConnectionAbortedError: the client left before it had sent anything.
    """
    with refusals():
        end = await _head_end(wire, limits)
        check_head(wire.ahead[:end])
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        parser.receive_data(wire.ahead)
        wire.ahead = b""
        event = parser.next_event()
    if not isinstance(event, h11.Request):
        raise Refused(Denied("", 0, Reason.BAD_REQUEST, detail="no complete request"), 400)
    return parser, event


async def check_server_name(wire: Wire, target: Target, limits: EgressLimits) -> None:
    """Read the ClientHello, leave it in `wire.ahead`, and require the target's name in it.

    A client that connects to an address sends no name, and must not.

    Raises:
        Refused: no TLS, another name, too long or too slow.
        ConnectionAbortedError: the client left before it had sent anything.
    """
    host, port = target.host, target.port
    try:
        async with asyncio.timeout(limits.head_seconds):
            while (hello := hello_in(wire.ahead)) is None:
                await _more(wire, limits, target)
        name = server_name(hello)
    except TimeoutError as error:
        detail = f"no ClientHello in {limits.head_seconds:g} s"
        raise Refused(Denied(host, port, Reason.TIMED_OUT, detail=detail)) from error
    except NotClientHello as error:
        raise Refused(Denied(host, port, Reason.NOT_TLS, detail=str(error))) from error
    expected = None if address_of(host) is not None else host
    if name != expected:
        detail = f"the ClientHello names {name[:253]!r}" if name else "the ClientHello has no name"
        raise Refused(Denied(host, port, Reason.SNI_MISMATCH, detail=detail))


async def _head_end(wire: Wire, limits: EgressLimits) -> int:
    seen = 0
    try:
        async with asyncio.timeout(limits.head_seconds):
            while (end := wire.ahead.find(b"\r\n\r\n", max(0, seen - 3))) < 0:
                if BARE_LF.search(wire.ahead, max(0, seen - 1)):
                    raise BadRequest("a bare LF in the head")
                seen = len(wire.ahead)
                await _more(wire, limits, None)
    except TimeoutError as error:
        detail = f"the head was not complete in {limits.head_seconds:g} s"
        raise Refused(Denied("", 0, Reason.TIMED_OUT, detail=detail), 408) from error
    if end + 4 > limits.head_bytes:
        raise _too_long(limits, None)
    return end + 4


async def _more(wire: Wire, limits: EgressLimits, target: Target | None) -> None:
    if len(wire.ahead) >= limits.head_bytes:
        raise _too_long(limits, target)
    if not await wire.more():
        if not wire.ahead:
            raise ConnectionAbortedError("closed before the first byte")
        host, port = (target.host, target.port) if target else ("", 0)
        raise Refused(Denied(host, port, Reason.BAD_REQUEST, detail="cut short"), 400)


def _too_long(limits: EgressLimits, target: Target | None) -> Refused:
    host, port = (target.host, target.port) if target else ("", 0)
    detail = f"a head of more than {limits.head_bytes} bytes"
    return Refused(Denied(host, port, Reason.LIMIT, detail=detail), 431)
