import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress.hosts import BadHost, parse_authority
from io_harness.sandbox.egress.http1 import (
    BadRequest,
    Connect,
    Forward,
    WrongHost,
    check_head,
    end_to_end,
    read_origin_request,
    read_proxy_request,
)

TARGET = parse_authority("a.example:80")


def parsed(head: bytes) -> h11.Request:
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(head)
    event = parser.next_event()
    assert isinstance(event, h11.Request)
    return event


def sent(forward: Connect | Forward) -> bytes:
    assert isinstance(forward, Forward)
    return h11.Connection(h11.CLIENT).send(forward.event()) or b""


def proxied(line: bytes, *headers: bytes) -> Connect | Forward:
    return read_proxy_request(parsed(b"\r\n".join([line, b"Host: x", *headers, b"", b""])))


@pytest.mark.parametrize(
    ("url", "start"),
    [
        (b"http://a.example/p?q=1", b"GET /p?q=1 HTTP/1.1\r\nHost: a.example\r\n"),
        (b"http://A.EXAMPLE:80/", b"GET / HTTP/1.1\r\nHost: a.example\r\n"),
        (b"HTTP://a.example", b"GET / HTTP/1.1\r\nHost: a.example\r\n"),
        (b"http://a.example?q", b"GET /?q HTTP/1.1\r\nHost: a.example\r\n"),
        (b"http://a.example.:8080/", b"GET / HTTP/1.1\r\nHost: a.example:8080\r\n"),
        (b"http://[2001:DB8::1]/", b"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n"),
        (b"http://a.example/http://b.example/", b"GET /http://b.example/ HTTP/1.1\r\nHost: a.ex"),
        (b"http://a.example/@b.example", b"GET /@b.example HTTP/1.1\r\nHost: a.example\r\n"),
    ],
)
def test_absolute_form_becomes_origin_form_with_our_own_host(url: bytes, start: bytes) -> None:
    assert sent(proxied(b"GET " + url + b" HTTP/1.1")).startswith(start)


def test_options_without_a_path_means_the_server() -> None:
    assert sent(proxied(b"OPTIONS http://a.example HTTP/1.1")).startswith(b"OPTIONS * HTTP/1.1")


@pytest.mark.parametrize(
    "url",
    [b"/", b"*", b"a.example", b"a.example:80", b"https://a.example/", b"ftp://a.example/",
     b"http:/a.example/", b"http:a.example", b"//a.example/", b"http://a.example/#f"],
)  # fmt: skip
def test_other_targets_are_bad_requests(url: bytes) -> None:
    with pytest.raises(BadRequest):
        proxied(b"GET " + url + b" HTTP/1.1")


@pytest.mark.parametrize(
    "url",
    [b"http://", b"http:///", b"http://u@a.example/", b"http://a.example:/", b"http://a.example:0/",
     b"http://a%2eexample/", b"http://127.1/", b"http://a.example\\@b.example/", b"http://[::1/"],
)  # fmt: skip
def test_bad_hosts_in_urls(url: bytes) -> None:
    with pytest.raises(BadHost):
        proxied(b"GET " + url + b" HTTP/1.1")


def test_connect() -> None:
    assert proxied(b"CONNECT a.example:443 HTTP/1.1") == Connect(parse_authority("a.example:443"))
    for line in (b"CONNECT a.example HTTP/1.1", b"CONNECT http://a.example:443 HTTP/1.1"):
        with pytest.raises(BadHost):
            proxied(line)
    with pytest.raises(BadRequest):
        proxied(b"CONNECT a.example:443 HTTP/1.1", b"Content-Length: 1")


def test_hop_by_hop_headers_and_those_that_connection_names_are_dropped() -> None:
    out = sent(
        proxied(
            b"POST http://a.example/ HTTP/1.1",
            b"Connection: X-Secret, close, content-length",
            b"X-Secret: 1",
            b"Proxy-Authorization: Basic x",
            b"Proxy-Connection: keep-alive",
            b"Keep-Alive: 5",
            b"TE: trailers",
            b"Upgrade: websocket",
            b"Expect: 100-continue",
            b"X-Kept: 1",
            b"Content-Length: 3",
        )
    )
    head = out.lower()
    for gone in (b"x-secret", b"proxy-", b"keep-alive", b"te:", b"upgrade", b"expect", b"host: x"):
        assert gone not in head
    assert b"X-Kept: 1" in out
    assert head.count(b"content-length: 3") == 1
    assert head.count(b"connection: close") == 1


def test_framing_is_written_anew() -> None:
    post = b"POST http://a.example/ HTTP/1.1"
    assert b"Transfer-Encoding: chunked" in sent(proxied(post, b"transfer-encoding: Chunked"))
    assert sent(proxied(post, b"Content-Length: 3", b"Content-Length: 3")).count(b"Length") == 1
    with pytest.raises(BadRequest):
        proxied(post, b"Content-Length: 3", b"Transfer-Encoding: chunked")
    with pytest.raises(BadRequest):
        proxied(b"POST http://a.example/ HTTP/1.0", b"Transfer-Encoding: chunked")
    for bad in (
        b"Transfer-Encoding: gzip, chunked",
        b"Content-Length: +3",
        b"Content-Length: 3, 4",
    ):
        with pytest.raises(h11.RemoteProtocolError):
            proxied(post, bad)


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/1.1\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
     b"GET / HTTP/1.1\r\nHost: a\x00\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
     b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\tb\r\n\r\n"],
)  # fmt: skip
def test_heads_with_two_readings_are_refused(head: bytes) -> None:
    with pytest.raises(BadRequest):
        check_head(head)
    check_head(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


def origin(line: bytes, *headers: bytes) -> Forward:
    return read_origin_request(parsed(b"\r\n".join([line, *headers, b"", b""])), TARGET)


def test_origin_form_must_name_the_connections_host() -> None:
    for good in (b"a.example", b"A.example.", b"a.example:80"):
        out = sent(origin(b"GET /x HTTP/1.1", b"Host: " + good))
        assert out.startswith(b"GET /x HTTP/1.1\r\nHost: a.example\r\n")
    for bad in (b"b.example", b"a.example:81", b"sub.a.example"):
        with pytest.raises(WrongHost):
            origin(b"GET / HTTP/1.1", b"Host: " + bad)
    for broken in (b"", b"u@a.example", b"a.example b", b"a%2eexample"):
        with pytest.raises(BadHost):
            origin(b"GET / HTTP/1.1", b"Host: " + broken)
    for line in (b"GET http://a.example/ HTTP/1.1", b"CONNECT a.example:80 HTTP/1.1"):
        with pytest.raises(BadRequest):
            origin(line, b"Host: a.example")
    with pytest.raises(BadRequest):
        origin(b"GET / HTTP/1.0")


TOKEN = st.text("abcXYZ-", min_size=1, max_size=8).map(str.encode)


@given(st.lists(st.tuples(TOKEN, TOKEN), max_size=6), TOKEN)
def test_what_connection_names_never_goes_on(
    headers: list[tuple[bytes, bytes]], named: bytes
) -> None:
    kept = end_to_end([*headers, (b"Connection", b"foo, " + named)])
    assert all(name.lower() not in (named.lower(), b"connection") for name, _ in kept)
    assert all(header in headers for header in kept)
