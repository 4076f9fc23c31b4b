"""A sandboxed command and the egress proxy, end to end over the host's loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.sandbox import Plan, network
from io_harness.sandbox.egress import Proxy, Rules, Session


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """An HTTP server on the host's loopback."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture(params=["linux-bubblewrap", "portable-floor"])
def backend(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name not in sandbox.backend_names() or sandbox.objection(name) is not None:
        pytest.skip(f"{name} does not work here")
    return name


class Loopback:
    """A name server for which every name is on the host's loopback."""

    async def resolve(self, host: str) -> list[ipaddress.IPv4Address]:
        return [ipaddress.IPv4Address("127.0.0.1")]


FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print("refused", error.code)
"""


async def fetch(backend: str, directory: Path, url: str, session: Session) -> str:
    plan = Plan(
        argv=(sys.executable, "-I", "-c", FETCH, url),
        cwd=directory,
        workspace=directory,
        env={"PATH": os.environ["PATH"]},
        net=network.through_proxy(Proxy(Loopback()), session),
    )
    return (await sandbox.run(plan, backend=backend)).stdout.text().strip()


async def test_allowed_and_denied(backend: str, tmp_path: Path, port: int) -> None:
    loopback = (ipaddress.ip_network("127.0.0.0/8"),)
    url = f"http://service.test:{port}/"
    open_session = Session("run", Rules.allowing(f"service.test:{port}", opened=loopback))
    assert await fetch(backend, tmp_path, url, open_session) == "hello"
    shut_session = Session("run", Rules.allowing("example.org", opened=loopback))
    assert await fetch(backend, tmp_path, url, shut_session) == "refused 403"
    assert [row.allowed for row in (*open_session.audit.rows, *shut_session.audit.rows)] == [
        True,
        False,
    ]


DIRECT = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    print("connected")
except OSError as error:
    print("failed")
"""


async def test_only_the_doors_are_open(tmp_path: Path, port: int) -> None:
    """On the floor the same connection goes through."""
    session = Session("run", Rules())
    found = {}
    for backend in ("linux-bubblewrap", "portable-floor"):
        if sandbox.objection(backend) is not None:
            pytest.skip(f"{backend} does not work here")
        plan = Plan(
            argv=(sys.executable, "-I", "-c", DIRECT, str(port)),
            cwd=tmp_path,
            workspace=tmp_path,
            env={"PATH": os.environ["PATH"]},
            net=network.through_proxy(Proxy(), session),
        )
        found[backend] = (await sandbox.run(plan, backend=backend)).stdout.text().strip()
    assert found == {"linux-bubblewrap": "failed", "portable-floor": "connected"}
