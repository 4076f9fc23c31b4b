"""The servers that the proxy may or may not reach, on addresses of a test's own namespace."""

import asyncio
import ssl
from dataclasses import dataclass, field
from functools import partial

import h11

ALLOWED = "127.0.0.2"
"""Where the allowed names lead. Opened in the address table by the tests' rules."""
FORBIDDEN = "127.0.0.1"
"""Where a service stands that no run may reach."""

_REPLIES = {
    b"/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"/until-close": b"HTTP/1.1 200 OK\r\n\r\nhello",
    b"/hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"/no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/keep-alive": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive, x-hop\r\n"
    b"Keep-Alive: timeout=9\r\nX-Hop: 1\r\nProxy-Authenticate: Basic\r\n\r\nhello",
    b"/malformed": b"ICY 200 OK\r\n\r\nhello",
    b"/two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"/long-head": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 70_000 + b"\r\n\r\n",
    b"/nothing": b"",
    b"/redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
}


def reply_to(request: h11.Request) -> bytes:
    """The reply that the path asks for; by default the Host header comes back."""
    path = request.target.partition(b"?")[0]
    if path in _REPLIES:
        return _REPLIES[path]
    host = dict(request.headers)[b"host"]
    body = b"" if request.method == b"HEAD" else b"hello from " + host
    length = len(b"hello from " + host)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, body)


@dataclass
class Upstream:
    """Remembers every byte that reached it, by address."""

    seen: dict[str, bytearray] = field(default_factory=dict)
    connections: dict[str, int] = field(default_factory=dict)

    def forget(self) -> None:
        self.seen.clear()
        self.connections.clear()

    async def start(self, tls: ssl.SSLContext | None) -> None:
        """Listen on both addresses: HTTP on 80 and 8080, TLS on 443, an echo on 9000."""
        for address in (ALLOWED, FORBIDDEN, "::1"):
            for port in (80, 8080):
                await asyncio.start_server(self._http, address, port)
            if tls is not None:
                await asyncio.start_server(partial(self._hello, tls), address, 443)
            await asyncio.start_server(self._echo, address, 9000)

    def _arrived(self, writer: asyncio.StreamWriter) -> bytearray:
        address = writer.get_extra_info("sockname")[0]
        self.connections[address] = self.connections.get(address, 0) + 1
        return self.seen.setdefault(address, bytearray())

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = self._arrived(writer)
        while data := await reader.read(65536):
            seen += data
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _hello(
        self, tls: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer a ClientHello; by hand, since asyncio shows no bytes before the handshake's end."""
        seen = self._arrived(writer)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = tls.wrap_bio(incoming, outgoing, server_side=True)
        while data := await reader.read(65536):
            seen += data
            incoming.write(data)
            try:
                server.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
            except ssl.SSLError:
                break
        writer.close()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = self._arrived(writer)
        parser = h11.Connection(h11.SERVER)
        request: h11.Request | None = None
        try:
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    data = await reader.read(65536)
                    seen += data
                    parser.receive_data(data)
                elif isinstance(event, h11.Request):
                    request = event
                    if request.target == b"/refuse-early":
                        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
                        return
                elif isinstance(event, h11.EndOfMessage) and request is not None:
                    writer.write(reply_to(request))
                    await writer.drain()
                    # Anything that is smuggled behind the request would arrive now.
                    seen += await reader.read(65536) if request.target == b"/linger" else b""
                    return
                elif not isinstance(event, h11.Data):
                    return
        except (h11.RemoteProtocolError, ConnectionError):
            return
        finally:
            writer.close()
