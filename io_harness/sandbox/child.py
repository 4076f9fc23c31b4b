"""A child process whose end the event loop learns of, started from a thread that outlives it.

Linux' parent-death signal fires when the *thread* that started a child ends, so each child gets a
thread, which waits for it. What the thread does to itself first (credentials, namespaces), only
this child inherits.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Callable

from .errors import SandboxError


class Child:
    """One started process."""

    def __init__(self, popen: subprocess.Popen[bytes], ended: asyncio.Future[int]) -> None:
        self.pid = popen.pid
        self.ended = ended
        """Return code as of `subprocess`: negative for a signal."""

    @staticmethod
    async def start(spawn: Callable[[], subprocess.Popen[bytes]], name: str) -> Child:
        """Runs `spawn` in a new thread. Its `OSError` and `SandboxError` come out here."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[subprocess.Popen[bytes]] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()

        def work() -> None:
            try:
                popen = spawn()
            except (OSError, SandboxError, subprocess.SubprocessError) as error:
                loop.call_soon_threadsafe(started.set_exception, error)
                return
            loop.call_soon_threadsafe(started.set_result, popen)
            code = popen.wait()
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set_result, code)

        threading.Thread(target=work, name=name, daemon=True).start()
        try:
            return Child(await asyncio.shield(started), ended)
        except asyncio.CancelledError:
            started.add_done_callback(_kill_unwanted)
            raise


def _kill_unwanted(started: asyncio.Future[subprocess.Popen[bytes]]) -> None:
    """The caller was cancelled while the child was being started."""
    if started.exception() is None:
        started.result().kill()
