"""A command that the caller talks to while it runs: a server on its standard streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .backend import Exit, Running, Stdio
from .capture import Capture, Reader
from .isolation import Isolation
from .plan import Plan
from .registry import choose
from .result import Captured, Cause
from .supervisor import end, first_breach, start

GRACE_SECONDS = 1.0
"""How long the command may take to end by itself after its input was closed."""
DRAIN_SECONDS = 0.2
_READ_AHEAD = 256 * 1024


class Attached:
    """A running command. Its whole tree is dead when the `attach` that made it is left."""

    def __init__(
        self,
        running: Running,
        plan: Plan,
        isolation: Isolation,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: Capture,
    ) -> None:
        self.isolation = isolation
        self.stdout = stdout
        """What the command writes. It is not read ahead of its reader by more than some 256 KiB."""
        self._running = running
        self._stdin = stdin
        self._stderr = stderr
        self._breach: Cause | None = None
        self._ended = asyncio.ensure_future(running.wait())
        self._watch = asyncio.ensure_future(self._watching(plan))

    async def write(self, data: bytes) -> None:
        """Returns when the command's pipe took it, or nearly.

        Raises:
            ConnectionError: the command has ended or closed its input.
        """
        self._stdin.write(data)
        await self._stdin.drain()

    @property
    def stderr(self) -> Captured:
        """What it has written there so far."""
        return self._stderr.captured()

    async def wait(self) -> Cause:
        """Returns when the main process has ended: by itself, or at a limit."""
        ended: Exit = await asyncio.shield(self._ended)
        return self._breach or ("exited" if ended.signal is None else "signalled")

    @property
    def exit(self) -> Exit | None:
        """How the main process ended; None while it runs."""
        if not self._ended.done() or self._ended.cancelled() or self._ended.exception():
            return None
        return self._ended.result()

    async def _watching(self, plan: Plan) -> None:
        self._breach = await first_breach(self._running, plan)
        self._running.kill()

    async def _close(self) -> None:
        """Its input ends, which tells a server to end; after a moment it is killed."""
        self._stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await asyncio.wait({self._ended})
        self._watch.cancel()
        await end(self._running)
        await asyncio.wait({self._ended, self._watch})


@asynccontextmanager
async def attach(plan: Plan, *, backend: str | None = None) -> AsyncIterator[Attached]:
    """Start a command and hold its three streams, each apart, for the body.

    Limits hold as for `run`, but for wall time, which is the caller's, and `plan.stdin`, which is
    not used. On leaving, the input is closed, and what still runs a second later is killed.

    Raises:
        SandboxError: no backend can carry out the plan, or the wrapper fails.
    """
    chosen, isolation = await choose(plan, backend)
    with _Pipes(plan.limits.output_bytes) as pipes:
        running = await start(chosen, plan, pipes.stdio)
        try:
            pipes.close_far_ends()
            stdin, stdout = await pipes.connect()
            attached = Attached(running, plan, isolation, stdin, stdout, pipes.stderr)
        except BaseException:
            await asyncio.shield(end(running))
            raise
        try:
            yield attached
        finally:
            # A second cancellation must not leave the tree alive.
            await asyncio.shield(attached._close())
            await pipes.drain()


class _Pipes:
    """The far ends, for the command, and the near ones. POSIX only."""

    def __init__(self, stderr_bytes: int) -> None:
        self._far = contextlib.ExitStack()
        self._near = contextlib.ExitStack()
        self._unconnected: list[int] = []
        self.stderr = Capture(stderr_bytes)
        with contextlib.ExitStack() as unwinding:
            unwinding.callback(self.close)
            stdin, self._to_stdin = os.pipe()
            self._far.callback(os.close, stdin)
            self._unconnected.append(self._to_stdin)
            self._from_stdout, stdout = os.pipe()
            self._far.callback(os.close, stdout)
            self._unconnected.append(self._from_stdout)
            from_stderr, stderr = os.pipe()
            self._far.callback(os.close, stderr)
            self._errors = Reader(from_stderr, self.stderr.feed)
            self._near.callback(self._errors.close)
            self.stdio = Stdio(stdin, stdout, stderr)
            unwinding.pop_all()

    async def connect(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        """The near ends of standard input and output as streams."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_AHEAD)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._from_stdout, "rb", 0)
        )
        self._unconnected.remove(self._from_stdout)
        self._near.callback(reading.close)
        writing, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(self._to_stdin, "wb", 0)
        )
        self._unconnected.remove(self._to_stdin)
        self._near.callback(writing.close)
        return asyncio.StreamWriter(writing, protocol, None, loop), reader

    def close_far_ends(self) -> None:
        self._far.close()

    async def drain(self) -> None:
        """Read what is left of standard error."""
        await asyncio.wait({self._errors.ended}, timeout=DRAIN_SECONDS)

    def close(self) -> None:
        self._far.close()
        self._near.close()
        while self._unconnected:
            os.close(self._unconnected.pop())

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
