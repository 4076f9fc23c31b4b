"""Processes forked from one that has imported the harness, which takes a fresh interpreter seconds.

What runs in them is a process of its own all the same, to be signalled and killed; and nothing but
imports has happened in the one that they are forked from.
"""

import contextlib
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from io_harness.cli import main

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["io_harness.plugin", "tests.crash.victim", "tests.integration.tools.victim", __name__]
)


class Command:
    """`io-harness`, begun: used like a `subprocess.Popen` of text that leads a session of its own."""

    stdout: IO[str]
    stderr: IO[str]

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        environment: Mapping[str, str],
        streams: int | None = None,
    ) -> None:
        """
        Args:
            environment: All that the process has.
            streams: A descriptor for its three streams; a terminal controls it, too. By default its
                input is empty, and `stdout` and `stderr` are pipes.
        """
        if streams is None:
            out, err = os.pipe(), os.pipe()
            self.stdout, self.stderr = (os.fdopen(reading) for reading, _ in (out, err))
            three = [os.open(os.devnull, os.O_RDONLY), out[1], err[1]]
        else:
            three = [os.dup(streams) for _ in range(3)]
        with contextlib.ExitStack() as stack:
            passed = [stack.enter_context(Connection(each)) for each in three]
            given = (arguments, cwd, dict(environment), passed)
            self._process = FORKS.Process(target=_run, args=given, daemon=True)
            self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("io-harness", timeout or 0)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end. What was left to read of both pipes."""
        with ThreadPoolExecutor(2) as threads, self.stdout, self.stderr:
            rest = [threads.submit(each.read) for each in (self.stdout, self.stderr)]
            try:
                out, err = (each.result(timeout) for each in rest)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return out, err


def _run(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: Sequence[Connection],
) -> None:
    """What the system, the shell and the interpreter do before `main`."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, buffering=1, closefd=False)  # noqa: SIM115 - the process's own
        for number, mode in enumerate("rww")
    )
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    main()
