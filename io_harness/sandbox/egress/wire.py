"""A TCP connection as the proxy uses it: bytes read ahead, deadlines, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence

from io_harness.sandbox.egress.hosts import Address

CHUNK = 64 * 1024
_LINGER_SECONDS = 1.0
_LINGER_BYTES = 1024 * 1024


class NotReached(Exception):
    """No address of an allowed host accepted a connection; the message says why."""


class Wire:
    """A connected, non-blocking socket and the bytes that were read from it ahead of need."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        # Unix sockets, which tests hand in, have no such option.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.ahead = b""
        self._loop = asyncio.get_running_loop()

    async def more(self) -> bool:
        """Read what has come and append it to `ahead`; False at the end of the stream."""
        data = await self._loop.sock_recv(self.sock, 16 * 1024)
        self.ahead += data
        return bool(data)

    async def receive_into(self, buffer: memoryview) -> int:
        """Fill the buffer from `ahead` first, then from the socket; 0 at the end."""
        if self.ahead:
            count = min(len(self.ahead), len(buffer))
            buffer[:count] = self.ahead[:count]
            self.ahead = self.ahead[count:]
            return count
        return await self._loop.sock_recv_into(self.sock, buffer)

    async def receive(self, most: int = CHUNK) -> bytes:
        """The bytes read ahead, or the next that come, up to `most`; empty at the end."""
        if self.ahead:
            data, self.ahead = self.ahead, b""
            return data
        return await self._loop.sock_recv(self.sock, most)

    async def send(self, data: bytes | memoryview) -> None:
        await self._loop.sock_sendall(self.sock, data)

    def end_writing(self) -> None:
        """Tell the peer that nothing more comes."""
        # It may have gone already, and then needs no telling.
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    async def linger(self) -> None:
        """End writing and read for a moment what the peer still sends.

        Closing with unread bytes makes the kernel send a reset, which can overtake the reply that
        tells the peer why it was refused.
        """
        self.end_writing()
        left = _LINGER_BYTES
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while left > 0 and (data := await self._loop.sock_recv(self.sock, 16 * 1024)):
                    left -= len(data)

    def close(self) -> None:
        self.sock.close()


async def dial(addresses: Sequence[Address], port: int, seconds: float) -> Wire:
    """Connect to the first address that accepts; each may take `seconds`.

    Raises:
        NotReached: none did.
    """
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    for address in addresses:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            failures.append(f"{address}: {error.strerror}")
            continue
        try:
            sock.setblocking(False)
            async with asyncio.timeout(seconds):
                await loop.sock_connect(sock, (str(address), port))
            return Wire(sock)
        except TimeoutError:
            failures.append(f"{address}: no answer in {seconds:g} s")
            sock.close()
        except OSError as error:
            failures.append(f"{address}: {error.strerror or error}")
            sock.close()
        except BaseException:
            sock.close()
            raise
    raise NotReached("; ".join(failures) or "no address to dial")
