"""Limits over time, changed rules, and the end of a listener."""

import asyncio
import base64
import gc
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from io_harness.sandbox.egress import (
    Effect,
    EgressLimits,
    Proxy,
    Question,
    Reason,
    Role,
    Rule,
    Rules,
    Session,
)
from io_harness.sandbox.egress.listener import Listeners
from tests.unit.egress.resolvers import Answers

NAMES = Answers({"a.example": ["127.0.0.1"]})
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()


@asynccontextmanager
async def served(session: Session, most: int = 100) -> AsyncIterator[int]:
    """The session behind a listener that identifies it, as one in a namespace would."""
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    work = Listeners(NAMES, most).accept(sock, session, Role.PROXY, None)
    task = asyncio.create_task(work)
    try:
        yield sock.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.wait({task})
        sock.close()


def session_for(port: int, effect: Effect = Effect.ALLOW, **limits: float) -> Session:
    rules = Rules((Rule.parse(effect, f"a.example:{port}"),), opened=LOOPBACK)
    return Session("run", rules, limits=EgressLimits(**limits))  # type: ignore[arg-type]


class Tunnel:
    """A client's connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes):
        self.reader, self.writer = reader, writer
        self.status = int(head.split()[1])

    @classmethod
    async def open(cls, proxy: int, port: int) -> "Tunnel":
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
        writer.write(b"CONNECT a.example:%d HTTP/1.1\r\nHost: a\r\n\r\n" % port)
        return cls(reader, writer, await reader.readuntil(b"\r\n\r\n"))

    async def echoes(self, data: bytes) -> bool:
        self.writer.write(data)
        return await self.reader.readexactly(len(data)) == data


@pytest.mark.parametrize("whose", ["session", "worker"])
async def test_one_connection_too_many_is_told_so_and_the_next_gets_through(whose: str) -> None:
    async with echo() as port:
        session = session_for(port, connections=2 if whose == "session" else 100)
        async with served(session, 2 if whose == "worker" else 100) as proxy:
            one, two = await Tunnel.open(proxy, port), await Tunnel.open(proxy, port)
            assert (one.status, two.status) == (200, 200)
            assert (await Tunnel.open(proxy, port)).status == 503
            assert session.audit.denied_by_reason == {Reason.LIMIT: 1}
            one.writer.close()
            while session.usage.open_connections > 1:
                await asyncio.sleep(0.01)
            assert (await Tunnel.open(proxy, port)).status == 200
            two.writer.close()


async def test_an_idle_tunnel_ends_and_a_busy_one_does_not() -> None:
    async with echo() as port, served(session_for(port, idle_seconds=1.5)) as proxy:
        idle, busy = await Tunnel.open(proxy, port), await Tunnel.open(proxy, port)
        for _ in range(20):
            await asyncio.sleep(0.1)
            assert await busy.echoes(b"x")
        assert await asyncio.wait_for(idle.reader.read(), 5) == b""
        assert await busy.echoes(b"y")
        busy.writer.close()


async def test_a_half_closed_tunnel_still_brings_the_rest() -> None:
    async with echo() as port, served(session_for(port)) as proxy:
        tunnel = await Tunnel.open(proxy, port)
        data = bytes(2_000_000)

        async def send() -> None:
            tunnel.writer.write(data)
            tunnel.writer.write_eof()

        sending = asyncio.create_task(send())
        assert await asyncio.wait_for(tunnel.reader.read(-1), 20) == data
        await sending


async def test_bytes_are_counted_in_both_directions_and_end_at_the_total() -> None:
    async with echo() as port:
        session = session_for(port, total_bytes=1000)
        async with served(session) as proxy:
            tunnel = await Tunnel.open(proxy, port)
            assert await tunnel.echoes(bytes(400))
            assert (session.usage.bytes_up, session.usage.bytes_down) == (400, 400)
            tunnel.writer.write(bytes(400))
            assert await asyncio.wait_for(tunnel.reader.read(), 5) == b""
            assert session.audit.denied_by_reason == {Reason.LIMIT: 1}
            assert (await Tunnel.open(proxy, port)).status == 403
            assert session.audit.allowed == 1


async def test_rules_are_read_anew_for_every_request() -> None:
    async with echo() as port:
        session = session_for(port)
        async with served(session) as proxy:
            assert (await Tunnel.open(proxy, port)).status == 200
            session.rules = Rules()
            assert (await Tunnel.open(proxy, port)).status == 403


async def test_a_request_is_held_while_someone_is_asked() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def ask(question: Question) -> bool:
        asked.set()
        await answer.wait()
        return True

    async with echo() as port:
        rules = Rules((Rule.parse(Effect.ASK, f"a.example:{port}"),), opened=LOOPBACK)
        session = Session("run", rules, ask=ask)
        async with served(session) as proxy:
            opening = asyncio.create_task(Tunnel.open(proxy, port))
            await asyncio.wait_for(asked.wait(), 5)
            await asyncio.sleep(0.05)
            assert not opening.done()
            answer.set()
            assert (await opening).status == 200
    assert session.audit.rows[0].asked


async def test_the_end_of_a_listener_ends_its_connections_and_leaves_nothing_open() -> None:
    async with echo() as port:
        gc.collect()  # Of tests before this one.
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
        session = session_for(port)
        async with served(session) as proxy:
            tunnels = [await Tunnel.open(proxy, port) for _ in range(20)]
            assert session.usage.open_connections == 20
        assert session.usage.open_connections == 0
        for tunnel in tunnels:
            assert await asyncio.wait_for(tunnel.reader.read(), 5) == b""
            tunnel.writer.close()
            await tunnel.writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy)
        await asyncio.sleep(0.05)
        if before is not None:
            assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_token_opens_its_own_sessions_listener_only() -> None:
    proxy = Proxy(NAMES)
    async with echo() as port:
        one, two = session_for(port), session_for(port)
        async with proxy.loopback(one) as env, proxy.loopback(two) as other:
            codes = []
            for given in (env, other):
                address, token = given["http_proxy"].rsplit("@", 1)[1], one.token
                process = await asyncio.create_subprocess_exec(
                    "curl", "-s", "-o", os.devnull, "-w", "%{http_connect}", "-p", "--max-time", "10",
                    "-x", f"http://run:{token}@{address}", f"http://a.example:{port}/",
                    stdout=asyncio.subprocess.PIPE,
                )  # fmt: skip
                codes.append((await process.communicate())[0])
    assert codes == [b"200", b"407"]
    assert (one.audit.allowed, two.audit.allowed) == (1, 0)
    assert two.audit.denied_by_reason == {Reason.BAD_TOKEN: 1}


def basic(text: str) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(text.encode()) + b"\r\n"


async def test_a_loopback_listener_admits_nothing_but_the_token() -> None:
    async with echo() as port:
        session = session_for(port)
        async with Proxy(NAMES).loopback(session) as env:
            address = env["http_proxy"].rsplit(":", 1)[1]
            good = basic(f"run:{session.token}")
            attempts = {
                b"": 407,
                basic("run:"): 407,
                basic(session.token): 407,
                basic(f"run:{session.token}x"): 407,
                basic(f"run:{session.token[:-1]}"): 407,
                b"Proxy-Authorization: Basic %%%\r\n": 407,
                b"Proxy-Authorization: Bearer " + good.split()[-1] + b"\r\n": 407,
                b"Authorization: Basic " + good.split()[-1] + b"\r\n": 407,
                good + good: 407,
                good: 200,
            }
            for header, expected in attempts.items():
                reader, writer = await asyncio.open_connection("127.0.0.1", int(address))
                writer.write(b"CONNECT a.example:%d HTTP/1.1\r\nHost: a\r\n%s\r\n" % (port, header))
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
                assert int(head.split()[1]) == expected, header
                writer.close()
        assert session.audit.denied_by_reason == {Reason.BAD_TOKEN: len(attempts) - 1}


@pytest.mark.parametrize("role", [Role.DNS, Role.HTTP, Role.TLS])
async def test_roles_that_know_no_token_are_not_served_on_the_host(role: Role) -> None:
    kind = socket.SOCK_DGRAM if role is Role.DNS else socket.SOCK_STREAM
    sock = socket.socket(socket.AF_INET, kind)
    sock.bind(("127.0.0.1", 0))
    with pytest.raises(ValueError, match="another network namespace"):
        await Proxy(NAMES).serve(sock, session_for(1), role)
    assert sock.fileno() == -1


async def test_a_server_that_says_nothing_is_told_from_a_refusal() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, served(session_for(port, idle_seconds=0.2)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
        writer.write(b"GET http://a.example:%d/ HTTP/1.1\r\nHost: a\r\n\r\n" % port)
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 504 ")
        writer.close()


async def test_a_body_that_came_along_with_its_head_is_counted_once() -> None:
    async with echo() as port:
        session = session_for(port, total_bytes=1_000_000)
        async with served(session) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
            head = b"POST http://a.example:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n"
            writer.write(head % port + bytes(500))
            await asyncio.wait_for(reader.read(), 5)
            writer.close()
        # The head as the proxy writes it, and the body.
        lines = [b"POST / HTTP/1.1", b"Host: a.example:%d" % port, b"Content-Length: 500"]
        head = b"\r\n".join([*lines, b"Connection: close", b"", b""])
        assert session.usage.bytes_up == len(head) + 500
