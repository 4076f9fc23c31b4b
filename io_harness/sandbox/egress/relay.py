"""Moving bytes between two connections, within the session's limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import h11

from io_harness.sandbox.egress.http1 import Forward, end_to_end
from io_harness.sandbox.egress.session import Session
from io_harness.sandbox.egress.wire import CHUNK, Wire

Work = Coroutine[Any, Any, None]


class Idle(Exception):
    """Nothing was transferred for the session's idle time."""


class BadReply(Exception):
    """The server's reply is no HTTP/1, or none came."""


class Meter:
    """Counts what two connections exchange, and knows when they last did."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last = time.monotonic()

    def up(self, count: int) -> None:
        self._last = time.monotonic()
        self._session.spend(up=count)

    def down(self, count: int) -> None:
        self._last = time.monotonic()
        self._session.spend(down=count)

    async def watch(self) -> None:
        """Never returns. Raises Idle once nothing was counted for the idle time."""
        limit = self._session.limits.idle_seconds
        while True:
            left = self._last + limit - time.monotonic()
            if left <= 0:
                raise Idle(f"nothing was transferred for {limit:g} s")
            await asyncio.sleep(left)


async def tunnel(client: Wire, server: Wire, session: Session) -> None:
    """Copy in both directions until both have ended.

    Raises:
        Idle, LimitExceeded, OSError
    """
    meter = Meter(session)
    down = _copy(server, client, meter.down)
    up = _copy(client, server, meter.up)
    await _run(meter, down, up, wait_for_second=True)


async def exchange(
    client: Wire, server: Wire, incoming: h11.Connection, request: Forward, session: Session
) -> None:
    """Send one request to the server and its reply to the client.

    Args:
        incoming: the parser that has read the request's head from the client.

    Raises:
        Idle, LimitExceeded, OSError, BadReply
        h11.RemoteProtocolError: the client's body is malformed.
    """
    meter = Meter(session)
    outgoing = h11.Connection(h11.CLIENT, max_incomplete_event_size=session.limits.head_bytes)
    head = outgoing.send(request.event()) or b""
    meter.up(len(head))
    await server.send(head)
    reply = _reply(client, server, incoming, outgoing, meter, session.limits.head_bytes)
    body = _send_body(client, server, incoming, outgoing, meter)
    await _run(meter, reply, body, wait_for_second=False)


async def _run(meter: Meter, first: Work, second: Work, *, wait_for_second: bool) -> None:
    """Run both, and raise the first error of either plainly. Nothing is left running."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work) for work in (first, second, meter.watch())]
    wanted = set(tasks[:2] if wait_for_second else tasks[:1])
    running = set(tasks)
    try:
        while wanted & running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        # Of two that failed at once the other's error is dropped here.
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(source: Wire, sink: Wire, count: Callable[[int], None]) -> None:
    buffer = memoryview(bytearray(CHUNK))
    while size := await source.receive_into(buffer):
        count(size)
        await sink.send(buffer[:size])
        # Neither call above lets others run while both sockets are ready.
        await asyncio.sleep(0)
    sink.end_writing()


async def _send_body(
    client: Wire, server: Wire, incoming: h11.Connection, outgoing: h11.Connection, meter: Meter
) -> None:
    if incoming.they_are_waiting_for_100_continue:
        go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
        await client.send(incoming.send(go_on) or b"")
    while True:
        event = incoming.next_event()
        if event is h11.NEED_DATA:
            incoming.receive_data(await client.receive())
            continue
        if isinstance(event, h11.Data):
            # Counted here, since the first part of the body came along with the head.
            meter.up(len(event.data))
            piece = outgoing.send(h11.Data(data=event.data)) or b""
        elif isinstance(event, h11.EndOfMessage):
            # Trailers are dropped.
            piece = outgoing.send(h11.EndOfMessage()) or b""
        else:
            return
        try:
            await server.send(piece)
        except OSError:
            # The server reads no more; its reply, perhaps sent already, says why.
            return
        await asyncio.sleep(0)


async def _reply(
    client: Wire,
    server: Wire,
    incoming: h11.Connection,
    outgoing: h11.Connection,
    meter: Meter,
    head_bytes: int,
) -> None:
    started = False
    while True:
        try:
            event = outgoing.next_event()
        except h11.RemoteProtocolError as error:
            raise BadReply(f"the server's reply is malformed: {error}") from error
        if event is h11.NEED_DATA:
            # h11 bounds only a head that is incomplete, so no read may hold a whole one too long.
            data = await server.receive(CHUNK if started else head_bytes)
            meter.down(len(data))
            outgoing.receive_data(data)
            await asyncio.sleep(0)
            continue
        if isinstance(event, h11.Response):
            started = True
            headers = [*end_to_end(event.headers.raw_items()), (b"Connection", b"close")]
            piece = incoming.send(
                h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
            )
        elif isinstance(event, h11.Data):
            piece = incoming.send(h11.Data(data=event.data))
        elif isinstance(event, h11.EndOfMessage):
            await client.send(incoming.send(h11.EndOfMessage()) or b"")
            return
        elif isinstance(event, h11.InformationalResponse):
            # 100 was answered by the proxy; others are hints that a client can do without.
            continue
        else:
            raise BadReply("the server closed the connection without a reply")
        await client.send(piece or b"")
