"""The command's three standard streams, seen from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from .backend import Stdio
from .capture import Capture, Reader, Spill
from .plan import Plan
from .result import Captured

DRAIN_SECONDS = 0.5
"""How long after the end of the tree a pipe that somebody else still holds is read."""


class Streams:
    """Opens the far ends for the command, and reads the near ones."""

    def __init__(
        self, plan: Plan, spill: Path | None, on_output: Callable[[bytes], None] | None
    ) -> None:
        self._far = contextlib.ExitStack()
        self._near = contextlib.ExitStack()
        self._on_output = on_output
        self._readers: list[Reader] = []
        with contextlib.ExitStack() as unwinding:
            unwinding.callback(self._close)
            self._spill = None
            if spill is not None:
                file = self._near.enter_context(spill.open("wb"))
                self._spill = Spill(file, plan.limits.file_bytes)
            stdin = self._open_stdin(plan.stdin)
            self._captures = [Capture(plan.limits.output_bytes)]
            stdout = self._open_pipe(self._captures[0])
            stderr = stdout
            if not plan.merge_streams:
                self._captures.append(Capture(plan.limits.output_bytes))
                stderr = self._open_pipe(self._captures[1])
            self.stdio = Stdio(stdin, stdout, stderr)
            unwinding.pop_all()

    def _open_stdin(self, data: bytes | None) -> int:
        """A file rather than a pipe: a command that doesn't read it holds nobody up."""
        if data is None:
            fd = os.open(os.devnull, os.O_RDONLY)
            self._far.callback(os.close, fd)
            return fd
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            fd = os.dup(file.fileno())
        self._far.callback(os.close, fd)
        return fd

    def _open_pipe(self, capture: Capture) -> int:
        near, far = os.pipe()
        self._far.callback(os.close, far)

        def sink(data: bytes) -> None:
            capture.feed(data)
            if self._spill is not None:
                self._spill.feed(data)
            if self._on_output is not None:
                self._on_output(data)

        reader = Reader(near, sink)
        self._near.callback(reader.close)
        self._readers.append(reader)
        return far

    def close_far_ends(self) -> None:
        """The command has its copies: from here on the pipes end when it ends."""
        self._far.close()

    async def failure(self) -> None:
        """Raises the error of a sink when one fails; otherwise never returns."""
        pending = {reader.ended for reader in self._readers}
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
        await asyncio.Event().wait()

    async def drain(self) -> None:
        """Reads to the end, or as long as `DRAIN_SECONDS`."""
        done, _ = await asyncio.wait(
            {reader.ended for reader in self._readers}, timeout=DRAIN_SECONDS
        )
        for ended in done:
            ended.result()

    @property
    def stdout(self) -> Captured:
        return self._captures[0].captured()

    @property
    def stderr(self) -> Captured:
        return self._captures[1].captured() if len(self._captures) > 1 else Captured()

    def _close(self) -> None:
        self._far.close()
        self._near.close()

    def __enter__(self) -> Streams:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
