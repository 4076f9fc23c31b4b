"""A child process whose end the event loop learns of, started from a thread that outlives it.

Linux' parent-death signal fires when the *thread* that started a child ends, so each child gets a
thread, which waits for it. What the thread does to itself first (credentials, namespaces), only
this child inherits.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from . import process_tree

T = TypeVar("T")

Popen = subprocess.Popen[bytes]


def _nothing(popen: Popen) -> None:
    """There is nothing to prepare."""


class Child:
    """One started process."""

    def __init__(self, pid: int, ended: asyncio.Future[int]) -> None:
        self.pid = pid
        self._ended = ended

    @property
    def ended(self) -> bool:
        return self._ended.done()

    async def wait(self) -> int:
        """Return code as of `subprocess`: negative for a signal. May be cancelled and repeated."""
        return await asyncio.shield(self._ended)

    @staticmethod
    async def start(
        spawn: Callable[[], Popen], name: str, prepare: Callable[[Popen], None] = _nothing
    ) -> Child:
        """Runs `spawn` and then `prepare` in a new thread, which may block.

        What they raise comes out here, the process ended. Not to be cancelled.
        """
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()
        holder: list[Popen] = []

        def work() -> None:
            try:
                holder.append(spawn())
                prepare(holder[0])
            except Exception as error:  # noqa: BLE001 - of whatever kind: somebody waits for it
                for popen in holder:
                    kill_with_children(popen)
                    popen.wait()
                _tell(loop, started.set_exception, error)
                return
            _tell(loop, started.set_result, None)
            _tell(loop, ended.set_result, holder[0].wait())

        threading.Thread(target=work, name=name, daemon=True).start()
        await started
        return Child(holder[0].pid, ended)


def _tell(loop: asyncio.AbstractEventLoop, setter: Callable[[T], None], value: T) -> None:
    with contextlib.suppress(RuntimeError):  # The loop was closed meanwhile: nobody listens.
        loop.call_soon_threadsafe(setter, value)


def kill_with_children(popen: Popen) -> None:
    """Ends a wrapper that may be about to have a child: the child, before anything runs in it."""
    if sys.platform == "linux":
        popen.send_signal(signal.SIGSTOP)
        process_tree.kill_all(process_tree.children(popen.pid))
    popen.kill()
