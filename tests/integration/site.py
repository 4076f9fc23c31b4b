"""A web server on loopback that counts, and a command that asks it from inside a sandbox."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

ASK = (
    'no_proxy= NO_PROXY= python -c "import sys, urllib.request as u; '
    'print(u.urlopen(sys.argv[1], timeout=60).read().decode())" {url}'
)
"""Through the proxy, although programs leave it out for loopback by themselves."""


@dataclass
class Site:
    port: int = 0
    paths: list[str] = field(default_factory=list)
    """Of the requests so far."""
    unanswered: int = 0
    """How many requests to come get no answer."""

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, path: str) -> str:
        """A shell command that prints what the server answers."""
        return ASK.format(url=f"http://{self.target}/{path}")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode().lstrip("/")
        self.paths.append(path)
        if self.unanswered:
            self.unanswered -= 1
            await reader.read()  # until the client goes away
            writer.close()
            return
        body = f"hello {path}".encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site


def policy(*rules: tuple[str, str], preset: str = "unattended") -> dict[str, object]:
    """A preset with rules about hosts, in a layer `contract`."""
    return {
        "preset": preset,
        "layers": [
            {
                "name": "contract",
                "rules": [{"effect": e, "act": "net", "target": t} for e, t in rules],
            }
        ],
    }
