"""One command inside bubblewrap, from outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Sequence

from .. import process_tree
from ..backend import Exit, Running
from ..child import Child, Popen
from ..doors import serve
from ..errors import SandboxError
from ..plan import Door, Limits
from .brokerage import mark, open_doors

START_SECONDS = 30


class Wiring:
    """The descriptors between the harness and bubblewrap; none reaches the command."""

    def __init__(self) -> None:
        self.status_read, self.status_write = os.pipe2(os.O_CLOEXEC)
        read, self.block_write = os.pipe2(os.O_CLOEXEC)
        # The reader is a writer too: for a killed worker's wrapper it then never ends, which would
        # be the sign to begin.
        self.block_read = os.open(f"/proc/self/fd/{read}", os.O_RDWR | os.O_CLOEXEC)
        os.close(read)
        self._far = [self.status_write, self.block_read]
        self._near = [self.status_read, self.block_write]

    def memory_file(self, content: bytes, name: str) -> int:
        fd = os.memfd_create(name)
        self._far.append(fd)
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    @property
    def passed(self) -> tuple[int, ...]:
        return tuple(self._far)

    def close_far_ends(self) -> None:
        for fd in self._far:
            os.close(fd)
        self._far.clear()

    def close(self) -> None:
        self.close_far_ends()
        for fd in self._near:
            os.close(fd)
        self._near.clear()


class Launch:
    """What the starting thread does between bubblewrap's start and the command's.

    As root that thread is the command's user by then, who alone may set its limits where root
    lacks CAP_SYS_RESOURCE.
    """

    def __init__(
        self,
        wiring: Wiring,
        limits: Limits,
        doors: Sequence[Door],
        *,
        own_process_count: bool = True,
    ) -> None:
        self._own_process_count = own_process_count
        self._wiring = wiring
        self._limits = limits
        self._doors = doors
        self._report = b""
        self.init: int | None = None
        """Host's process id of the sandbox's PID 1; None when bubblewrap ended before it."""
        self.init_fd: int | None = None
        self.sockets: list[socket.socket] = []

    def prepare(self, popen: Popen) -> None:
        """Sets the limits, opens the doors, and lets the command begin. Blocks."""
        self._wiring.close_far_ends()
        while self.init is None:
            if not select.select([self._wiring.status_read], [], [], START_SECONDS)[0]:
                raise SandboxError(f"the sandbox did not start within {START_SECONDS} s")
            data = os.read(self._wiring.status_read, 4096)
            if not data:
                return  # It failed, and `BubblewrapRun.wait` says so.
            self._report += data
            self.init = self._field("child-pid")
        self.init_fd = os.pidfd_open(self.init)
        set_limits(self.init, self._limits, own_process_count=self._own_process_count)
        if self._doors:
            self.sockets = open_doors(self.init, self._doors)
        # It may have failed between its report and now; `BubblewrapRun.wait` then says why.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._wiring.block_write, b"!")

    def exit_code(self) -> int | None:
        """Of the init shell; None when it was never started. Call when bubblewrap has ended."""
        while data := os.read(self._wiring.status_read, 4096):
            self._report += data
        return self._field("exit-code")

    def _field(self, name: str) -> int | None:
        """From bubblewrap's reports: JSON objects one after another, the last perhaps in part."""
        decoder = json.JSONDecoder()
        text = self._report.decode()
        while text := text.lstrip():
            try:
                report, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                return None
            if name in report:
                return int(report[name])
            text = text[end:]
        return None

    def close(self) -> None:
        if self.init_fd is not None:
            os.close(self.init_fd)
        for each in self.sockets:
            each.close()


class BubblewrapRun(Running):
    """A command that has begun."""

    def __init__(
        self,
        child: Child,
        launch: Launch,
        doors: Sequence[Door],
        held: contextlib.ExitStack,
        backend: str,
    ) -> None:
        self._child = child
        self._backend = backend
        self._launch = launch
        self._held = held
        self._serving = [
            asyncio.create_task(serve(door, each))
            for door, each in zip(doors, launch.sockets, strict=False)
        ]

    async def wait(self) -> Exit:
        code = await self._child.wait()
        reported = self._launch.exit_code()
        if reported is not None:
            # The init shell tells a signal as 128 more than its number.
            if 128 < reported <= 128 + signal.NSIG:
                return Exit(None, reported - 128)
            return Exit(reported, None)
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return Exit(None, signal.SIGKILL)
        raise SandboxError(f"{self._backend} ended with {code} before the command began")

    def members(self) -> Sequence[int]:
        return process_tree.tree(self._launch.init) if self._launch.init is not None else ()

    def kill(self) -> None:
        """The end of PID 1 is the end of its namespace: the kernel leaves nobody."""
        with contextlib.suppress(ProcessLookupError):
            if self._launch.init_fd is not None:
                signal.pidfd_send_signal(self._launch.init_fd, signal.SIGKILL)
            elif not self._child.ended:
                os.kill(self._child.pid, signal.SIGKILL)

    async def close(self) -> None:
        try:
            # Even when the wrapper has ended: its command has not, if it was about to begin.
            self.kill()
            await self._child.wait()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
        finally:
            self._held.close()


def set_limits(pid: int, limits: Limits, *, own_process_count: bool) -> None:
    """rlimits of a command's first process, from outside.

    Once its user namespace exists the process count is the sandbox's own; without one it is all of
    the user's. A soft CPU limit below the hard one sends SIGXCPU, by which the cause is known.
    """
    wanted = {
        resource.RLIMIT_CPU: (limits.cpu_seconds, limits.cpu_seconds + 2),
        resource.RLIMIT_FSIZE: (limits.file_bytes,) * 2,
        resource.RLIMIT_NOFILE: (limits.open_files,) * 2,
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (64 * 1024,) * 2,
        resource.RLIMIT_MSGQUEUE: (0, 0),
        resource.RLIMIT_RTTIME: (mark(),) * 2,
    }
    if own_process_count:
        wanted[resource.RLIMIT_NPROC] = (limits.processes, limits.processes)
    for which, (soft, hard) in wanted.items():
        ceiling = resource.prlimit(pid, which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.prlimit(pid, which, (soft, hard))
