"""The harness's own connections: the httpx transport against a server on loopback."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme

from io_harness.sandbox.egress import Effect, EgressLimits, Reason, Rule, Rules, Session, Via
from io_harness.sandbox.egress.client import EgressRefused, EgressTransport
from tests.unit.egress.resolvers import Answers

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
NAMES = Answers(
    {
        "api.example": ["127.0.0.1"],
        "dead.example": ["127.0.0.3", "127.0.0.1"],
        "inside.example": ["10.0.0.1"],
        "other.example": ["127.0.0.1"],
    }
)
AUTHORITY = trustme.CA()


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[str]]]:
    """An HTTP server; yields its port and the first lines that it got."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b"":
            seen.append(head.split(b"\r\n")[0].decode())
            if b"/away" in head:
                writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://inside.example/\r\n")
                writer.write(b"Content-Length: 0\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            await writer.drain()

    async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listener = await asyncio.start_server(until_closed, "127.0.0.1", 0, ssl=tls)
    try:
        yield listener.sockets[0].getsockname()[1], seen
    finally:
        listener.close()


def session_for(*texts: str) -> Session:
    rules = Rules(
        tuple(Rule.parse(Effect.ALLOW, text, "provider") for text in texts), opened=LOOPBACK
    )
    return Session("harness", rules, limits=EgressLimits(connect_seconds=2))


def client(session: Session, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=EgressTransport(session, NAMES, verify=verify))


async def test_an_allowed_host_is_reached_and_audited() -> None:
    async with server() as (port, seen):
        session = session_for(f"api.example:{port}")
        async with client(session) as http:
            reply = await http.get(f"http://api.example:{port}/v1")
    assert reply.text == "hi"
    assert seen == ["GET /v1 HTTP/1.1"]
    (row,) = session.audit.rows
    assert (row.via, row.allowed, row.layer, row.addresses) == (
        Via.CLIENT, True, "provider", ("127.0.0.1",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://other.example:{port}/", Reason.NO_RULE),
        ("http://127.0.0.1:{port}/", Reason.NO_RULE),
        ("http://inside.example/", Reason.ADDRESS_REFUSED),
        ("http://missing.inside.example/", Reason.NOT_RESOLVED),
        ("ftp://api.example/", Reason.BAD_HOST),
    ],
)
async def test_other_hosts_raise_what_no_one_takes_for_a_lost_connection(
    url: str, reason: Reason
) -> None:
    async with server() as (port, seen):
        session = session_for(f"api.example:{port}", "inside.example", "*.inside.example")
        async with client(session) as http:
            with pytest.raises(EgressRefused) as caught:
                await http.get(url.format(port=port))
            assert not isinstance(caught.value, httpx.HTTPError)
            assert caught.value.denied.reason is reason
            assert seen == []
            assert (await http.get(f"http://api.example:{port}/")).text == "hi"
    assert [row.reason for row in session.audit.rows] == [reason, None]


async def test_a_deny_counts_for_a_connection_that_is_kept_open() -> None:
    async with server() as (port, seen):
        session = session_for(f"api.example:{port}")
        async with client(session) as http:
            await http.get(f"http://api.example:{port}/1")
            await http.get(f"http://api.example:{port}/2")
            assert session.audit.allowed == 1
            deny = Rule.parse(Effect.DENY, "api.example", "admin")
            session.rules = Rules((deny,), default=Effect.ALLOW, opened=LOOPBACK)
            with pytest.raises(EgressRefused, match="layer: admin"):
                await http.get(f"http://api.example:{port}/3")
    assert len(seen) == 2


async def test_a_redirect_is_a_new_decision() -> None:
    async with server() as (port, _):
        session = session_for(f"api.example:{port}")
        async with client(session) as http:
            with pytest.raises(EgressRefused, match=r"inside\.example:80 refused, no rule"):
                await http.get(f"http://api.example:{port}/away", follow_redirects=True)


async def test_the_certificate_is_checked_against_the_name_and_not_the_address() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("api.example").configure_cert(context)
    trusting = ssl.create_default_context()
    AUTHORITY.configure_trust(trusting)
    async with server(context) as (port, _):
        session = session_for(f"api.example:{port}", f"other.example:{port}")
        async with client(session, trusting) as http:
            assert (await http.get(f"https://api.example:{port}/")).text == "hi"
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await http.get(f"https://other.example:{port}/")


async def test_the_next_pinned_address_is_tried() -> None:
    async with server() as (port, _):
        session = session_for(f"dead.example:{port}")
        async with client(session) as http:
            assert (await http.get(f"http://dead.example:{port}/")).text == "hi"


async def test_when_nobody_listens_it_is_a_connect_error_and_the_row_says_so() -> None:
    async with server() as (port, _):
        pass
    session = session_for(f"api.example:{port}")
    async with client(session) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://api.example:{port}/")
    (row,) = session.audit.rows
    assert row.allowed
    assert "not reached" in row.detail


async def test_proxy_variables_of_the_worker_are_not_a_way_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with server() as (elsewhere, elsewhere_seen), server() as (port, seen):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{elsewhere}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{elsewhere}")
        async with client(session_for(f"api.example:{port}")) as http:
            await http.get(f"http://api.example:{port}/")
        assert (len(seen), len(elsewhere_seen)) == (1, 0)
        # The same client without the transport would have used the variable.
        async with httpx.AsyncClient() as plain:
            await plain.get(f"http://api.example:{port}/")
        assert (len(seen), len(elsewhere_seen)) == (1, 1)
