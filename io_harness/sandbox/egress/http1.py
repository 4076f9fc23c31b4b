"""HTTP/1 requests: read strictly, and written anew, so that nobody downstream reads them otherwise.

h11 parses and frames. What it lets pass and what has served request smuggling is refused before:
bare CR or LF, folded headers, repeated or conflicting framing headers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import h11

from io_harness.sandbox.egress.hosts import Target, parse_authority

Headers = list[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
    b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
})  # fmt: skip
"""Headers that concern one connection (RFC 9110, section 7.6.1), and Expect, which the proxy
answers itself."""

_REPLACED = frozenset({b"host", b"content-length"})
BARE_LF = re.compile(rb"(?<!\r)\n")
_BARE = re.compile(rb"(?<!\r)\n|\r(?!\n)|\x00")
_FOLDED = re.compile(rb"\r\n[ \t]")
_ABSOLUTE = re.compile(r"http://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)


class BadRequest(Exception):
    """The request is malformed or ambiguous; the message says how. Never holds a path or header."""


class WrongHost(Exception):
    """The request names another host than the connection is for."""

    def __init__(self, named: str) -> None:
        super().__init__(f"the request names {named}")


@dataclass(frozen=True, slots=True)
class Connect:
    """CONNECT host:port."""

    target: Target


@dataclass(frozen=True, slots=True)
class Forward:
    """A request for a plain-HTTP server, ready to be sent in origin form.

    Attributes:
        path: path and query, or "*" for OPTIONS without a path.
        headers: end-to-end headers; without Host and framing, which are written anew.
        framing: the body's framing header, if it has a body.
    """

    target: Target
    method: bytes
    path: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    framing: tuple[tuple[bytes, bytes], ...]

    def event(self) -> h11.Request:
        """The request as it goes to the server."""
        default = self.target.port == 80
        host = str(self.target).removesuffix(":80") if default else str(self.target)
        headers = [(b"Host", host.encode()), *self.headers, *self.framing]
        headers.append((b"Connection", b"close"))
        return h11.Request(method=self.method, target=self.path, headers=headers)


def check_head(head: bytes) -> None:
    """Refuse heads whose lines could be split in more than one way.

    Raises:
        BadRequest
    """
    if _BARE.search(head):
        raise BadRequest("a bare CR, a bare LF or a NUL in the head")
    if _FOLDED.search(head):
        raise BadRequest("a folded header line")
    if head.startswith(b"\r\n"):
        raise BadRequest("an empty line before the request")


def read_proxy_request(request: h11.Request) -> Connect | Forward:
    """A request to a proxy: CONNECT, or the absolute form of an http URL.

    Raises:
        BadRequest, BadHost
    """
    text = request.target.decode("ascii")
    framing = _framing(request)
    if request.method == b"CONNECT":
        if framing:
            raise BadRequest("CONNECT with a body")
        return Connect(parse_authority(text))
    match = _ABSOLUTE.fullmatch(text)
    if match is None:
        raise BadRequest("a proxy takes CONNECT or an absolute http:// URL")
    authority, path = match.groups()
    target = parse_authority(authority, default_port=80)
    return _forward(target, request, path or "", framing)


def read_origin_request(request: h11.Request, expected: Target) -> Forward:
    """A request as a server gets it, on a connection that is for one host.

    Raises:
        BadRequest, BadHost
        WrongHost: its Host header names another.
    """
    text = request.target.decode("ascii")
    if request.method == b"CONNECT" or not text.startswith("/"):
        raise BadRequest("not a request in origin form")
    named = [value for name, value in request.headers if name == b"host"]
    if len(named) != 1:
        raise BadRequest("not exactly one Host header")
    target = parse_authority(named[0].decode("ascii", "replace"), default_port=expected.port)
    if target != expected:
        raise WrongHost(str(target))
    return _forward(expected, request, text, _framing(request))


def end_to_end(headers: Headers) -> Headers:
    """The headers without those of the connection, and without those that Connection names."""
    dropped = set(HOP_BY_HOP)
    for name, value in headers:
        if name.lower() == b"connection":
            dropped |= {token.strip().lower() for token in value.split(b",")}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _forward(
    target: Target, request: h11.Request, path: str, framing: tuple[tuple[bytes, bytes], ...]
) -> Forward:
    if not path:
        path = "*" if request.method == b"OPTIONS" else "/"
    elif path.startswith("?"):
        path = "/" + path
    kept = tuple(
        (name, value)
        for name, value in end_to_end(request.headers.raw_items())
        if name.lower() not in _REPLACED
    )
    return Forward(target, bytes(request.method), path.encode("ascii"), kept, framing)


def _framing(request: h11.Request) -> tuple[tuple[bytes, bytes], ...]:
    if request.http_version not in (b"1.0", b"1.1"):
        raise BadRequest("another version than HTTP/1.0 and HTTP/1.1")
    lengths = [value for name, value in request.headers if name == b"content-length"]
    codings = [value for name, value in request.headers if name == b"transfer-encoding"]
    if lengths and codings:
        raise BadRequest("both Content-Length and Transfer-Encoding")
    if codings:
        # h11 let pass only "chunked", and only once; equal lengths it made one.
        if request.http_version < b"1.1":
            raise BadRequest("a transfer coding in HTTP/1.0")
        return ((b"Transfer-Encoding", b"chunked"),)
    return ((b"Content-Length", lengths[0]),) if lengths else ()
