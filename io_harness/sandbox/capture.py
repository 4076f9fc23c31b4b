"""Keeps head and tail of a stream, and the whole of it in a file."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import BinaryIO

from .result import Captured

CHUNK = 64 * 1024


class Capture:
    """Collects one stream within a fixed amount of memory."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        if room := self._head_room - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_room + CHUNK:
            del self._tail[: len(self._tail) - self._tail_room]

    def captured(self) -> Captured:
        tail = self._tail[max(0, len(self._tail) - self._tail_room) :]
        return Captured(bytes(self._head), bytes(tail), self._total)


class Spill:
    """Writes raw output to a file, up to a size."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._left = limit

    def feed(self, data: bytes) -> None:
        if self._left > 0:
            self._file.write(data[: self._left])
            self._left -= len(data)


class Reader:
    """Reads a pipe as its bytes come and hands them to a sink, until the end or `close`."""

    def __init__(self, fd: int, sink: Callable[[bytes], None]) -> None:
        self._fd = fd
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._open = True
        self.ended: asyncio.Future[None] = self._loop.create_future()
        if os.name == "nt":
            threading.Thread(target=self._read_blocking, daemon=True).start()
        else:
            os.set_blocking(fd, False)
            self._loop.add_reader(fd, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        try:
            self._sink(data)
        except Exception as error:  # noqa: BLE001 - the caller's sink: its error is the run's
            self._fail(error)

    def _read_blocking(self) -> None:
        """Windows' event loop can't watch an anonymous pipe. The job's end closes the other end."""
        while data := os.read(self._fd, CHUNK):
            self._loop.call_soon_threadsafe(self._sink, data)
        self._loop.call_soon_threadsafe(self.close)

    def _fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
        self.close()

    def close(self) -> None:
        """Stops reading; what is in the pipe now is lost."""
        if not self._open:
            return
        self._open = False
        if os.name != "nt":
            self._loop.remove_reader(self._fd)
        os.close(self._fd)
        if not self.ended.done():
            self.ended.set_result(None)
