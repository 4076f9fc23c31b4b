"""Raw requests and the right decision about each: the table of the proxy suite.

Every refused case has a control: a request that differs in the point at issue and gets through.
Nothing here runs anything, so that another proxy can be held against the same table.
"""

# ruff: noqa: E501 - a table reads best with few breaks in a row

from dataclasses import dataclass
from typing import Literal

from tests.unit.egress.hellos import hello_body, name_list, real_hello, records

Role = Literal["proxy", "http", "tls"]
RuleSet = Literal["narrow", "wide", "open"]
"""narrow: a few names on ALLOWED. wide: any host and port, only ALLOWED's address opened.
open: any host and port, loopback opened, so that even the forbidden service may be reached."""


@dataclass(frozen=True)
class Sent:
    """What a client sends.

    Attributes:
        first: at once; a tuple is sent piece by piece with a pause between.
        then: after a reply to `first` that opened a tunnel.
        role: the listener that gets it.
        to: the name whose invented address a captured connection goes to.
        rules: the session's rules.
        answer: what is answered to a question; None: nothing, ever.
        hang_up: end writing after the last byte.
    """

    first: bytes | tuple[bytes, ...]
    then: bytes = b""
    role: Role = "proxy"
    to: str = "a.example"
    rules: RuleSet = "narrow"
    answer: bool | None = True
    hang_up: bool = False


@dataclass(frozen=True)
class Case:
    """A request, the decision, and what shows it.

    Attributes:
        status: of the proxy's or the server's first reply; None: no HTTP reply.
        reason: of the refusal in the audit log; None: allowed.
        got: what must be in the bytes that the client got.
        reached: what must be in the bytes that the allowed server got.
        control: gets through although it differs only in the point at issue.
    """

    name: str
    sent: Sent
    status: int | None
    reason: str | None = None
    got: bytes = b""
    reached: bytes = b""
    control: Sent | None = None


def get(
    url: str, *headers: str, method: str = "GET", body: str = "", version: str = "1.1"
) -> bytes:
    lines = [f"{method} {url} HTTP/{version}", *(headers or ("Host: a.example",))]
    return ("\r\n".join([*lines, "", ""]) + body).encode("latin-1")


def connect(authority: str) -> bytes:
    return get(authority, f"Host: {authority}", method="CONNECT")


GOOD = Sent(get("http://a.example/"))
HELLO = real_hello("a.example")
TLS = Sent(connect("a.example:443"), then=HELLO)
DECOY = Sent(get("http://127.0.0.1/"), rules="open")
ALERT = b"\x15\x03\x01"
SERVER_HELLO = b"\x16\x03"
POST = "http://a.example/linger"


def allowed(
    name: str, sent: Sent, got: bytes = b"", reached: bytes = b"", status: int = 200
) -> Case:
    return Case(name, sent, status, None, got, reached)


def refused(
    name: str, sent: Sent, status: int | None, reason: str, control: Sent = GOOD, got: bytes = b""
) -> Case:
    return Case(name, sent, status, reason, got, b"", control)


FORMS = [
    allowed("absolute form", GOOD, b"hello from a.example", b"GET / HTTP/1.1\r\nHost: a.example\r\n"),
    allowed("own host header", Sent(get("http://a.example/x?y=1", "Host: evil.test")),
            b"hello from a.example", b"GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\n"),
    allowed("upper case", Sent(get("HTTP://A.EXAMPLE/")), reached=b"Host: a.example\r\n"),
    allowed("trailing dot", Sent(get("http://a.example./")), reached=b"Host: a.example\r\n"),
    allowed("port written out", Sent(get("http://a.example:80/")), reached=b"Host: a.example\r\n"),
    allowed("port of a rule", Sent(get("http://a.example:8080/")), reached=b"Host: a.example:8080\r\n"),
    allowed("subdomain of a rule", Sent(get("http://x.y.sub.example/")), b"hello"),
    allowed("HTTP/1.0 without host", Sent(b"GET http://a.example/ HTTP/1.0\r\n\r\n"), b"hello"),
    allowed("options of the server", Sent(get("http://a.example", method="OPTIONS")),
            reached=b"OPTIONS * HTTP/1.1\r\n"),
    allowed("head", Sent(get("http://a.example/", method="HEAD")), b"Content-Length: 20"),
    allowed("body with a length", Sent(get(POST, "Host: a", "Content-Length: 3", method="POST", body="abc")),
            reached=b"\r\n\r\nabc"),
    allowed("chunked body", Sent(get(POST, "Host: a", "Transfer-Encoding: chunked", method="POST",
                                     body="3\r\nabc\r\n0\r\n\r\n")), reached=b"3\r\nabc\r\n0\r\n\r\n"),
    allowed("expect", Sent(get(POST, "Host: a", "Expect: 100-continue", "Content-Length: 3",
                               method="POST"), then=b"abc"), reached=b"abc", status=100),
    allowed("slow but in time", Sent((b"GET http://a.ex", b"ample/ HTTP/1.1\r\nHost: a", b"\r\n\r\n")),
            b"hello"),
    refused("origin form", Sent(get("/")), 400, "bad_request"),
    refused("asterisk", Sent(get("*", method="OPTIONS")), 400, "bad_request"),
    refused("authority form with GET", Sent(get("a.example:80")), 400, "bad_request"),
    refused("https url", Sent(get("https://a.example/")), 400, "bad_request", TLS),
    refused("ftp url", Sent(get("ftp://a.example/")), 400, "bad_request"),
    refused("one slash", Sent(get("http:/a.example/")), 400, "bad_request"),
    refused("fragment", Sent(get("http://a.example/#f")), 400, "bad_request"),
    refused("no host in the url", Sent(get("http:///path")), 400, "bad_host"),
    refused("user info", Sent(get("http://a.example@evil.test/")), 400, "bad_host"),
    refused("user info the other way", Sent(get("http://evil.test@a.example/")), 400, "bad_host"),
    refused("password", Sent(get("http://u:p@a.example/")), 400, "bad_host"),
    refused("backslash", Sent(get("http://a.example\\@evil.test/")), 400, "bad_host"),
    refused("backslash in place of a slash", Sent(get("http://a.example\\x/")), 400, "bad_host"),
    refused("escape in the host", Sent(get("http://a%2eexample/")), 400, "bad_host"),
    refused("escaped NUL in the host", Sent(get("http://evil.test%00.a.example/")), 400, "bad_host"),
    refused("NUL in the host", Sent(get("http://a.example\x00.evil.test/")), 400, "bad_request"),
    refused("bytes above ASCII", Sent(get("http://\xfc.example/")), 400, "bad_request"),
    refused("tab in the target", Sent(get("http://a.example/\tx")), 400, "bad_request"),
    refused("two spaces", Sent(get(" http://a.example/")), 400, "bad_request"),
    refused("empty port", Sent(get("http://a.example:/")), 400, "bad_host"),
    refused("port 0", Sent(get("http://a.example:0/")), 400, "bad_host"),
    refused("port too big", Sent(get("http://a.example:65616/")), 400, "bad_host"),
    refused("port with a sign", Sent(get("http://a.example:+80/")), 400, "bad_host"),
    refused("port with a zero", Sent(get("http://a.example:080/")), 400, "bad_host"),
    refused("two ports", Sent(get("http://a.example:80:80/")), 400, "bad_host"),
    refused("two dots at the end", Sent(get("http://a.example../")), 400, "bad_host"),
]  # fmt: skip

RULES = [
    allowed("connect by name", TLS, SERVER_HELLO, b"a.example"),
    refused("no rule", Sent(get("http://other.test/")), 403, "no_rule"),
    refused("no rule for connect", Sent(connect("other.test:443")), 403, "no_rule", TLS),
    refused("name that ends alike", Sent(get("http://xa.example/")), 403, "no_rule"),
    refused("name that begins alike", Sent(get("http://a.example.evil.test/")), 403, "no_rule"),
    refused("below a name without wildcard", Sent(get("http://x.a.example/")), 403, "no_rule"),
    refused("top of a wildcard", Sent(get("http://sub.example/")), 403, "no_rule"),
    refused("other port", Sent(get("http://a.example:81/")), 403, "no_rule"),
    refused("connect to another port", Sent(connect("a.example:22")), 403, "no_rule", TLS),
    refused("deny beats allow", Sent(get("http://bad.sub.example/")), 403, "denied_by_rule",
            Sent(get("http://good.sub.example/"))),
    refused("deny beats allow in capitals", Sent(get("http://BAD.sub.example./")), 403,
            "denied_by_rule", Sent(get("http://good.sub.example/"))),
    refused("deny covers every port", Sent(connect("bad.sub.example:9000"), rules="wide"), 403,
            "denied_by_rule", Sent(connect("good.sub.example:9000"), then=b"x", rules="wide", hang_up=True)),
    allowed("asked and approved", Sent(get("http://ask.example/")), b"hello from ask.example"),
    refused("asked and refused", Sent(get("http://ask.example/"), answer=False), 403, "ask_refused",
            Sent(get("http://ask.example/"))),
    refused("asked and not answered", Sent(get("http://ask.example/"), answer=None), 403,
            "ask_timed_out", Sent(get("http://ask.example/"))),
    refused("connect asked and refused", Sent(connect("ask.example:443"), answer=False), 403,
            "ask_refused", Sent(connect("ask.example:443"), then=real_hello("ask.example"))),
]  # fmt: skip

# Under "wide" any name may be reached, so that only the address speaks against these.
_LOOPBACK = [
    "127.0.0.1", "127.0.0.1.", "127.1.2.3", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::FFFF:7F00:0001]",
    "localhost", "LOCALHOST", "localhost.", "private.example", "mixed.example", "mapped.example",
    "nat64.example", "v6.example",
]  # fmt: skip
_MISSPELT = [
    "127.1", "127.0.1", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "017700000001", "2130706433",
    "127.0.0.01", "127.0.0.1..", "0", "1.127.0.0.1", "0.0.0.0.", "[127.0.0.1]", "[::1%25lo]", "[::1",
    "256.256.256.256",
]  # fmt: skip
_ELSEWHERE = ["169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "198.18.0.1",
              "metadata.example", "[fd00:ec2::254]", "[fe80::1]", "224.0.0.1", "255.255.255.255"]  # fmt: skip

ADDRESSES = [
    allowed("the opened address", Sent(get("http://127.0.0.2/"), rules="wide"), b"hello"),
    allowed("the forbidden service when opened", DECOY, b"hello from 127.0.0.1"),
    *(
        refused(f"{host} by url", Sent(get(f"http://{host}/"), rules="wide"), 403,
                "address_refused", DECOY)
        for host in (*_LOOPBACK, *_ELSEWHERE)
        if host != "0.0.0.0."
    ),
    *(
        refused(f"{host} by connect", Sent(connect(f"{host}:9000"), rules="wide"), 403,
                "address_refused", Sent(connect("127.0.0.1:9000"), then=b"x", rules="open", hang_up=True))
        for host in (*_LOOPBACK[:8], "private.example", "mixed.example")
    ),
    *(
        refused(f"{host} by url", Sent(get(f"http://{host}/"), rules="wide"),
                *((403, "address_refused") if host == "0.0.0.0." else (400, "bad_host")), DECOY)
        for host in _MISSPELT
    ),
    refused("unresolvable", Sent(get("http://missing.example/"), rules="wide"), 403, "not_resolved"),
    refused("a name server that hangs", Sent(get("http://hang.example/"), rules="wide"), 403,
            "resolve_timed_out"),
    Case("nobody listens", Sent(get("http://a.example:81/"), rules="wide"), 502, None, b"not reached"),
]  # fmt: skip

SMUGGLING = [
    allowed("pipelined second request is not sent on",
            Sent(get(POST) + get("http://evil.test/second")), b"hello"),
    allowed("bytes behind the body are not sent on",
            Sent(get(POST, "Host: a", "Content-Length: 3", method="POST", body="abcGET /x HTTP/1.1\r\n")),
            reached=b"\r\n\r\nabc"),
    allowed("equal lengths become one",
            Sent(get(POST, "Host: a", "Content-Length: 3", "Content-Length: 3", method="POST", body="abc")),
            reached=b"Content-Length: 3\r\nConnection: close\r\n\r\nabc"),
    allowed("connection header can't name framing",
            Sent(get(POST, "Host: a", "Connection: content-length, host", "Content-Length: 3",
                     method="POST", body="abc")), reached=b"Content-Length: 3\r\n"),
    allowed("chunk extensions are dropped",
            Sent(get(POST, "Host: a", "Transfer-Encoding: chunked", method="POST",
                     body="3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\n")), reached=b"3\r\nabc\r\n0\r\n\r\n"),
    *(
        refused(name, Sent(head), status, "bad_request",
                Sent(get(POST, "Host: a", "Content-Length: 3", method="POST", body="abc")))
        for name, status, head in [
            ("length and coding", 400, get(POST, "Host: a", "Content-Length: 3",
                                           "Transfer-Encoding: chunked", method="POST", body="0\r\n\r\n")),
            ("two lengths", 400, get(POST, "Host: a", "Content-Length: 3", "Content-Length: 4", method="POST")),
            ("lengths in a list", 400, get(POST, "Host: a", "Content-Length: 3, 4", method="POST")),
            ("signed length", 400, get(POST, "Host: a", "Content-Length: +3", method="POST")),
            ("hexadecimal length", 400, get(POST, "Host: a", "Content-Length: 0x3", method="POST")),
            ("coding twice", 501, get(POST, "Host: a", "Transfer-Encoding: chunked",
                                      "Transfer-Encoding: chunked", method="POST")),
            ("other coding", 501, get(POST, "Host: a", "Transfer-Encoding: gzip, chunked", method="POST")),
            ("coding with a vertical tab", 400, get(POST, "Host: a", "Transfer-Encoding: \x0bchunked", method="POST")),
            ("coding in HTTP/1.0", 400, get(POST, "Host: a", "Transfer-Encoding: chunked",
                                            method="POST", version="1.0")),
            ("space before the colon", 400, get(POST, "Host: a", "Content-Length : 3", method="POST")),
            ("folded header", 400, get(POST, "Host: a", "X: b\r\n Content-Length: 3", method="POST")),
            ("bare LF between lines", 400, b"POST http://a.example/ HTTP/1.1\nHost: a\r\n\r\n"),
            ("bare LF in a header", 400, get(POST, "Host: a\nX: b")),
            ("bare CR in a header", 400, get(POST, "Host: a\rX: b")),
            ("NUL in a header", 400, get(POST, "Host: a", "X: \x00")),
            ("empty line first", 400, b"\r\n" + get(POST)),
            ("two hosts", 400, get(POST, "Host: a.example", "Host: evil.test")),
            ("no host", 400, b"GET http://a.example/ HTTP/1.1\r\n\r\n"),
            ("header without a colon", 400, get(POST, "Host: a", "Nonsense")),
            ("HTTP/2.0", 400, get(POST, version="2.0")),
            ("HTTP/0.9", 400, b"GET http://a.example/\r\n\r\n"),
            ("HTTP/2 preface", 400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            ("no HTTP at all", 400, b"\x05\x01\x00\r\n\r\n"),
        ]
    ),
    Case("malformed chunk", Sent(get(POST, "Host: a", "Transfer-Encoding: chunked", method="POST",
         body="zz\r\nabc\r\n0\r\n\r\n")), None, "bad_request", control=Sent(get(POST, "Host: a",
         "Transfer-Encoding: chunked", method="POST", body="3\r\nabc\r\n0\r\n\r\n"))),
]  # fmt: skip

TUNNELS = [
    allowed("hello in small records",
            Sent(connect("a.example:443"), then=records(hello_body((0, name_list(b"a.example"))), 7)),
            reached=b"\x16\x03\x01\x00\x07\x01"),
    allowed("name in capitals", Sent(connect("A.Example.:443"), then=HELLO), SERVER_HELLO),
    allowed("hello sent along with connect", Sent(connect("a.example:443") + HELLO), SERVER_HELLO),
    allowed("address without a name", Sent(connect("127.0.0.2:443"), then=real_hello(None), rules="wide"),
            SERVER_HELLO),
    allowed("another port is not looked into", Sent(connect("a.example:9000"), then=b"ping", rules="wide", hang_up=True),
            b"ping", b"ping"),
    allowed("HTTP through a tunnel to port 80",
            Sent(connect("a.example:80"), then=get("/t", "Host: a.example")), b"hello from a.example",
            b"GET /t HTTP/1.1\r\nHost: a.example\r\n"),
    refused("another name in the hello", Sent(connect("a.example:443"), then=real_hello("b.example")),
            200, "sni_mismatch", TLS, ALERT),
    refused("no name in the hello", Sent(connect("a.example:443"), then=real_hello(None)), 200,
            "sni_mismatch", TLS, ALERT),
    refused("a name below the allowed one", Sent(connect("a.example:443"), then=real_hello("x.a.example")),
            200, "sni_mismatch", TLS, ALERT),
    refused("a name for an address", Sent(connect("127.0.0.2:443"), then=HELLO, rules="wide"), 200,
            "sni_mismatch", TLS, ALERT),
    refused("two names in the hello",
            Sent(connect("a.example:443"), then=records(hello_body((0, name_list(b"a.example", b"b.example"))))),
            200, "not_tls", TLS, ALERT),
    refused("two name extensions",
            Sent(connect("a.example:443"), then=records(hello_body(
                (0, name_list(b"a.example")), (0, name_list(b"b.example"))))),
            200, "not_tls", TLS, ALERT),
    refused("a name with NUL", Sent(connect("a.example:443"), then=records(hello_body(
            (0, name_list(b"a.example\x00.evil.test"))))), 200, "sni_mismatch", TLS, ALERT),
    refused("HTTP to port 443", Sent(connect("a.example:443"), then=get("/")), 200, "not_tls", TLS, ALERT),
    refused("SSH to port 443", Sent(connect("a.example:443"), then=b"SSH-2.0-x\r\n"), 200, "not_tls", TLS,
            ALERT),
    refused("SSL 2.0", Sent(connect("a.example:443"), then=b"\x80\x2e\x01\x03\x01" + bytes(43)), 200,
            "not_tls", TLS, ALERT),
    refused("half a hello", Sent(connect("a.example:443"), then=HELLO[:40], hang_up=True), 200,
            "bad_request", TLS, ALERT),
    refused("a hello that never ends", Sent(connect("a.example:443"), then=HELLO[:40]), 200, "timed_out",
            TLS, ALERT),
    refused("a hello of 40 KB",
            Sent(connect("a.example:443"), then=records(hello_body((0xFDE8, bytes(40_000))))), 200, "limit",
            TLS, ALERT),
    refused("another host through a tunnel to port 80",
            Sent(connect("a.example:80"), then=get("/", "Host: b.example")), 200, "host_mismatch",
            Sent(connect("a.example:80"), then=get("/")), b"403 Forbidden"),
    refused("absolute form through a tunnel to port 80",
            Sent(connect("a.example:80"), then=get("http://b.example/")), 200, "bad_request",
            Sent(connect("a.example:80"), then=get("/")), b"400 Bad Request"),
    refused("connect without a port", Sent(connect("a.example")), 400, "bad_host", TLS),
    refused("connect to a url", Sent(connect("http://a.example:80")), 400, "bad_host", TLS),
    refused("connect with a path", Sent(connect("a.example:443/x")), 400, "bad_host", TLS),
    refused("connect with user info", Sent(connect("u@a.example:443")), 400, "bad_host", TLS),
    refused("connect to an unbracketed address", Sent(connect("::1:443")), 400, "bad_host", TLS),
    refused("connect with a body", Sent(get("a.example:443", "Host: a", "Content-Length: 1",
            method="CONNECT", body="x")), 400, "bad_request", TLS),
    refused("connect with a coding", Sent(get("a.example:443", "Host: a", "Transfer-Encoding: chunked",
            method="CONNECT")), 400, "bad_request", TLS),
    refused("connect with an empty host", Sent(connect(":443")), 400, "bad_host", TLS),
    refused("connect with two ports", Sent(connect("a.example:443:80")), 400, "bad_host", TLS),
    refused("lower-case connect", Sent(get("a.example:443", method="connect")), 400, "bad_request", TLS),
]  # fmt: skip

HTTP = Sent(get("/c", "Host: a.example"), role="http")
CAPTURED = [
    allowed("captured HTTP", HTTP, b"hello from a.example", b"GET /c HTTP/1.1\r\nHost: a.example\r\n"),
    allowed("captured TLS", Sent(HELLO, role="tls"), SERVER_HELLO, b"a.example", status=0),
    allowed("captured name of an ask rule", Sent(get("/", "Host: ask.example"), role="http", to="ask.example"),
            b"hello from ask.example"),
    refused("captured HTTP for another host", Sent(get("/", "Host: b.example"), role="http"), 403,
            "host_mismatch", HTTP),
    refused("captured HTTP for another port", Sent(get("/", "Host: a.example:8080"), role="http"), 403,
            "host_mismatch", HTTP),
    refused("captured HTTP without a host", Sent(b"GET / HTTP/1.0\r\n\r\n", role="http"), 400, "bad_request",
            HTTP),
    refused("captured proxy request", Sent(get("http://a.example/"), role="http"), 400, "bad_request", HTTP),
    refused("captured connect", Sent(connect("a.example:443"), role="http"), 400, "bad_request", HTTP),
    refused("captured HTTP at an address that stands for nothing", Sent(get("/"), role="http", to=""), 403,
            "unknown_address", HTTP),
    refused("captured TLS at an address that stands for nothing", Sent(HELLO, role="tls", to=""), None,
            "unknown_address", Sent(HELLO, role="tls"), ALERT),
    refused("captured TLS for another name", Sent(real_hello("b.example"), role="tls"), None, "sni_mismatch",
            Sent(HELLO, role="tls"), ALERT),
    refused("captured TLS without a name", Sent(real_hello(None), role="tls"), None, "sni_mismatch",
            Sent(HELLO, role="tls"), ALERT),
    refused("captured port 443 without TLS", Sent(get("/"), role="tls"), None, "not_tls",
            Sent(HELLO, role="tls"), ALERT),
    refused("captured name that a rule denies by now",
            Sent(get("/", "Host: bad.sub.example"), role="http", to="bad.sub.example"), 403, "denied_by_rule",
            Sent(get("/", "Host: good.sub.example"), role="http", to="good.sub.example")),
    refused("captured name that leads inside", Sent(get("/", "Host: private.example"), role="http",
            to="private.example", rules="wide"), 403, "address_refused", HTTP),
]  # fmt: skip


def halves(size: int) -> tuple[bytes, bytes]:
    """A request of about `size` bytes in two pieces, of which the second is short."""
    whole = get("http://a.example/", "Host: a", "X: " + "x" * size)
    return whole[: size - 5_000], whole[size - 5_000 :]


LIMITS = [
    refused("a head of 40 KB", Sent(get("http://a.example/", "Host: a", "X: " + "x" * 40_000)), 431, "limit",
            Sent(get("http://a.example/", "Host: a", "X: " + "x" * 20_000))),
    refused("a head of 36 KB that ends within one read of the limit", Sent(halves(36_000)), 431, "limit",
            Sent(halves(25_000))),
    refused("10,000 headers", Sent(get("http://a.example/", "Host: a", *["X: y"] * 10_000)), 431, "limit",
            Sent(get("http://a.example/", "Host: a", *["X: y"] * 50))),
    refused("a head that never ends", Sent(b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n"), 408, "timed_out"),
    refused("a head a byte at a time", Sent(tuple(bytes([b]) for b in get("http://a.example/"))), 408,
            "timed_out", Sent((b"GET http://a.example/ HT", b"TP/1.1\r\nHost: a\r\n\r\n"))),
    refused("half a head", Sent(b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\n", hang_up=True), 400,
            "bad_request"),
    Case("more bytes than the run may transfer", Sent(get(POST, "Host: a", "Content-Length: 3000000",
         method="POST", body="x" * 3_000_000)), None, "limit", control=Sent(get(POST, "Host: a",
         "Content-Length: 1000", method="POST", body="x" * 1_000))),
]  # fmt: skip


def path(name: str) -> Sent:
    return Sent(get(f"http://a.example/{name}"))


REPLIES = [
    allowed("chunked reply", path("chunked"), b"5\r\nhello\r\n0\r\n\r\n"),
    allowed("chunked reply to HTTP/1.0", Sent(b"GET http://a.example/chunked HTTP/1.0\r\n\r\n"),
            b"\r\n\r\nhello"),
    allowed("reply that ends with the connection", path("until-close"), b"hello"),
    allowed("reply without content", path("no-content"), b"204 No Content", status=204),
    allowed("hints before the reply", path("hints"), b"hello"),
    allowed("reply before the body was sent", Sent(get("http://a.example/refuse-early", "Host: a",
            "Content-Length: 500000", method="POST", body="x" * 500_000)), b"413", status=413),
    allowed("redirects are the client's to follow, by a new decision", path("redirect"),
            b"Location: http://127.0.0.1/", status=302),
    Case("malformed reply", path("malformed"), 502, None, b"malformed"),
    Case("reply with two lengths", path("two-lengths"), 502, None, b"malformed"),
    Case("reply with a head of 70 KB", path("long-head"), 502, None, b"malformed"),
    Case("no reply", path("nothing"), 502, None),
]  # fmt: skip

CASES = [*FORMS, *RULES, *ADDRESSES, *SMUGGLING, *TUNNELS, *CAPTURED, *LIMITS, *REPLIES]
