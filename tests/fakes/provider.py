"""A provider on loopback that answers from a script, and fails as told.

async with FakeProvider(Fail(529), Say("done")) as fake:
    ...  # point a client at fake.url
assert len(fake.requests) == 2
"""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import h11

from .script import Answer, Cut, Fail, Hang, Raw, Say
from .wires import encode, error_body, error_event, events


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any
    """Parsed JSON, or None."""
    at: float
    """Seconds of a monotonic clock."""


class FakeProvider:
    """Serves Anthropic Messages, Chat Completions and Responses under one address."""

    def __init__(
        self,
        *script: Answer,
        models: Sequence[Mapping[str, object]] = (),
        respond: Callable[[Received], Answer] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`respond` gives the answers once the script has ended."""
        self._script = list(script)
        self._respond = respond
        self._models = models
        self._tls = tls
        self.requests: list[Received] = []
        self.abandoned = 0
        """Streams whose client went away before their end."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            self.abandoned += 1
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection, which keeps the failures apart."""
        received = await _receive(reader)
        if received is None:
            return
        connection = _Connection(reader, writer)
        if received.path.endswith("/models"):
            body = json.dumps({"object": "list", "data": list(self._models)}).encode()
            await connection.respond(200, body, {"content-type": "application/json"})
            return
        self.requests.append(received)
        if not self._script and self._respond is None:
            await connection.respond(500, b'{"error": {"message": "the script has ended"}}')
            return
        if self._script:
            answer = self._script.pop(0)
        else:
            assert self._respond is not None
            answer = self._respond(received)
        match answer:
            case Fail():
                headers = {"content-type": "application/json", **answer.headers}
                await connection.respond(answer.status, error_body(received.path, answer), headers)
            case Raw():
                headers = {"content-type": answer.content_type, **answer.headers}
                await connection.respond(200, answer.body, headers)
            case Hang():
                connection.reset()
            case Say():
                await _stream(connection, received.path, answer)


async def _stream(connection: "_Connection", path: str, say: Say) -> None:
    await connection.start_stream()
    for position, event in enumerate(events(path, say)):
        at_cut = say.cut is not None and position == say.cut.after
        if at_cut and await _cut(connection, path, say.cut):
            return
        await connection.write(encode(event), say.write_bytes, say.pause)
    await connection.end_stream()


async def _cut(connection: "_Connection", path: str, cut: Cut | None) -> bool:
    """Whether the stream is over."""
    assert cut is not None
    match cut.how:
        case "close":
            await connection.end_stream()
        case "reset":
            connection.reset()
        case "stall":
            await connection.silence(cut.seconds)
            await connection.write(b": still here\n\n")
            return False
        case "error":
            await connection.write(encode(error_event(path, cut.error)))
            await connection.end_stream()
        case "garbage":
            await connection.write(b"data: {not json\n\n")
            return False
    return True


async def _receive(reader: asyncio.StreamReader) -> Received | None:
    parser = h11.Connection(h11.SERVER)
    head: h11.Request | None = None
    body = b""
    while True:
        event = parser.next_event()
        match event:
            case h11.NEED_DATA:
                data = await reader.read(65536)
                if not data and head is None:
                    return None
                parser.receive_data(data)
            case h11.Request():
                head = event
            case h11.Data():
                body += event.data
            case h11.EndOfMessage():
                break
            case _:
                return None
    assert head is not None
    return Received(
        path=head.target.decode().partition("?")[0],
        headers={name.decode().lower(): value.decode() for name, value in head.headers},
        body=json.loads(body) if body else None,
        at=time.monotonic(),
    )


class _Connection:
    """Writes one response, byte by byte where asked."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        transport_socket = writer.get_extra_info("socket")
        transport_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = transport_socket

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        lines = {"content-length": str(len(body)), "connection": "close", **(headers or {})}
        self._writer.write(_head(status, lines) + body)
        await self._writer.drain()

    async def start_stream(self) -> None:
        lines = {
            "content-type": "text/event-stream; charset=utf-8",
            "transfer-encoding": "chunked",
            "connection": "close",
        }
        self._writer.write(_head(200, lines))
        await self._writer.drain()

    async def write(self, data: bytes, size: int = 4096, pause: float = 0.0) -> None:
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self._writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await self._writer.drain()
            if pause:
                await asyncio.sleep(pause)

    async def silence(self, seconds: float) -> None:
        """Raises ConnectionResetError as soon as the client goes away."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reader.read()
                raise ConnectionResetError("the client went away")

    async def end_stream(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def reset(self) -> None:
        """Break the connection with a TCP reset instead of an orderly end."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Fake\r\n{lines}\r\n".encode()
