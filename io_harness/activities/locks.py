"""Advisory file locks between attempts, tasks and processes of one host."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_POLL_SECONDS = 0.02


class FileLock:
    """An open, locked file. The lock ends when every copy of the descriptor is closed, so a child
    process that inherits it keeps it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def share(self) -> None:
        """Let other readers in."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)


@asynccontextmanager
async def file_lock(path: Path, *, shared: bool = False) -> AsyncIterator[FileLock]:
    """Wait for the lock at `path`, hold it for the body. Waiting can be cancelled."""
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _taken(descriptor, mode):  # noqa: ASYNC110 - flock has no event to wait for
                await asyncio.sleep(_POLL_SECONDS)
            if not _still_there(descriptor, path):
                continue  # who held it removed the file
            yield FileLock(descriptor)
            return
        finally:
            os.close(descriptor)


def _taken(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
