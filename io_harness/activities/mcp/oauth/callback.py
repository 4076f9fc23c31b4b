"""Where a browser comes back to after a login: a listener on the loopback (RFC 8252, 7.3)."""

import asyncio
import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult

from ..text import one_line

PATH = "/callback"
_LINE_SECONDS = 10.0
_SHOWN = 200


class Callback:
    """The browser's return, by the listener or by an address that a person pastes."""

    def __init__(self) -> None:
        self.port = 0
        self._came: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    async def came(self) -> AuthorizationCodeResult:
        """What the authorization server sends along.

        Raises:
            OAuthFlowError: the login was refused.
        """
        return await self._came

    def take(self, address: str) -> bool:
        """Whether the address is one that a login ends at. It ends the wait."""
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != PATH or not query.keys() & {"code", "error"} or self._came.done():
            return False
        if "code" in query:
            self._came.set_result(
                AuthorizationCodeResult(
                    code=query["code"], state=query.get("state"), iss=query.get("iss")
                )
            )
        else:
            told = one_line(f"{query['error']} {query.get('error_description', '')}", _SHOWN)
            self._came.set_exception(OAuthFlowError(f"the login was refused: {told}"))
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of the browser."""
        try:
            async with asyncio.timeout(_LINE_SECONDS):
                line = await reader.readline()
                taken = self.take(line.decode("ascii", "replace").split(" ")[1])
        except (TimeoutError, ValueError, IndexError, ConnectionError):
            taken = False
        said = "You can close this page." if taken else "Nothing waits for this."
        body = f"<!doctype html><title>io-harness</title><p>{html.escape(said)}".encode()
        status = "200 OK" if taken else "404 Not Found"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        writer.close()


@asynccontextmanager
async def listening(port: int) -> AsyncIterator[Callback]:
    """A listener on the loopback; port 0 is any free one.

    Raises:
        OSError: the port is in use.
    """
    callback = Callback()
    server = await asyncio.start_server(callback.serve, "127.0.0.1", port)
    callback.port = server.sockets[0].getsockname()[1]
    async with server:
        yield callback
