"""Runs the table of raw requests in a network namespace and prints what happened, as JSON lines.

Started by the tests as a program of its own, since only a fresh process can enter a namespace as an
ordinary user. The proxy runs in the namespace too: a wrong decision could reach nothing but the
servers here.
"""

import asyncio
import json
import re
import socket
import ssl
import sys
from dataclasses import asdict, dataclass

import trustme

from io_harness.sandbox.egress import (
    EgressLimits,
    Question,
    Role,
    Session,
)
from io_harness.sandbox.egress.hosts import canonical_host
from io_harness.sandbox.egress.listener import Listeners
from tests.integration.egress.cases import CASES, Sent
from tests.integration.egress.names import RULES, Names
from tests.integration.egress.namespaces import loopback_up
from tests.integration.egress.upstream import ALLOWED, FORBIDDEN, Upstream

LIMITS = EgressLimits(
    head_bytes=32 * 1024,
    head_seconds=0.8,
    resolve_seconds=0.5,
    ask_seconds=1.0,
    idle_seconds=5,
    connect_seconds=2,
    total_bytes=2_000_000,
)

_SILENCE = 2.5
"""Longer than each time limit of the proxy here; an open tunnel has no more to say by then."""


@dataclass(frozen=True)
class Outcome:
    """What one request led to. Bytes as latin-1 text."""

    status: int | None
    got: str
    reached: str
    forbidden: int
    connections: int
    rows: list[tuple[bool, str | None, str, int]]


class World:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._listeners = Listeners(Names(), 100)

    async def run(self, sent: Sent) -> Outcome:
        self._upstream.forget()

        async def ask(_: Question) -> bool:
            if sent.answer is None:
                await asyncio.Event().wait()
            return bool(sent.answer)

        session = Session("run", RULES[sent.rules], ask=ask, limits=LIMITS)
        listener = socket.create_server(("0.0.0.0", 0))
        listener.setblocking(False)
        serving = asyncio.create_task(
            self._listeners.accept(listener, session, Role(sent.role), None)
        )
        try:
            async with asyncio.timeout(15):
                got = await self._exchange(sent, session, listener.getsockname()[1])
                while session.usage.open_connections:
                    await asyncio.sleep(0.002)
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            listener.close()
        match = re.match(rb"HTTP/1\.1 (\d{3}) ", got)
        seen = self._upstream
        return Outcome(
            status=int(match.group(1)) if match else None,
            got=got.decode("latin-1"),
            reached=seen.seen.get(ALLOWED, b"").decode("latin-1"),
            forbidden=seen.connections.get(FORBIDDEN, 0) + seen.connections.get("::1", 0),
            connections=sum(seen.connections.values()),
            rows=[(r.allowed, r.reason, r.host, r.port) for r in session.audit.rows],
        )

    async def _exchange(self, sent: Sent, session: Session, port: int) -> bytes:
        to = "127.0.0.1"
        if sent.role != "proxy":
            invented = session.invent_address(canonical_host(sent.to)) if sent.to else "127.9.9.9"
            assert invented is not None
            to = invented
        reader, writer = await asyncio.open_connection(to, port)
        got = b""
        try:
            if isinstance(sent.first, tuple):
                return await self._piecemeal(sent.first, reader, writer)
            writer.write(sent.first)
            await writer.drain()
            if sent.then:
                got = await reader.readuntil(b"\r\n\r\n")
                writer.write(sent.then)
                await writer.drain()
            if sent.hang_up:
                writer.write_eof()
            got += await self._rest(reader)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            got += getattr(error, "partial", b"")
        finally:
            writer.close()
        return got

    async def _piecemeal(
        self, pieces: tuple[bytes, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Send with pauses until all is sent or the other side has had enough."""
        reading = asyncio.create_task(self._rest(reader))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            done, _ = await asyncio.wait({reading}, timeout=0.03)
            if done:
                break
        return await reading

    async def _rest(self, reader: asyncio.StreamReader) -> bytes:
        """All that comes until the end, a ServerHello, or a silence."""
        got = b""
        try:
            while data := await asyncio.wait_for(reader.read(65536), _SILENCE):
                got += data
                if data.startswith(b"\x16\x03"):
                    break
        except TimeoutError:
            return got
        return got


async def main() -> None:
    loopback_up()
    authority = trustme.CA()
    certificate = authority.issue_cert("a.example", "*.example", ALLOWED)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    upstream = Upstream()
    await upstream.start(context)
    world = World(upstream)
    for case in CASES:
        outcome = await world.run(case.sent)
        control = await world.run(case.control) if case.control else None
        row = {"name": case.name, "outcome": asdict(outcome)}
        print(json.dumps(row | {"control": asdict(control) if control else None}), flush=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
