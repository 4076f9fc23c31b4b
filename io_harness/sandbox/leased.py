"""Temporary directories that don't outlive whoever made them by much, even when it is killed.

A lease is a lock on the directory, which the kernel drops with the process. The first lease of a
kind that a process takes removes those of the same user that nobody holds any more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "io-harness-leased-"

if sys.platform == "win32":

    def _lock(directory: Path) -> int | None:
        """Windows can't lock a directory; what a killed process leaves there stays."""
        return os.open(os.devnull, os.O_RDONLY)

    def _sweep(parent: str, prefix: str) -> None: ...

else:
    import fcntl

    def _lock(directory: Path) -> int | None:
        return _locked(directory, fcntl.LOCK_SH)

    def _locked(directory: Path, how: int) -> int | None:
        """A descriptor with the lock; None when the directory is gone."""
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, how)
            if os.path.samestat(os.fstat(fd), os.lstat(directory)):
                return fd
        except FileNotFoundError:
            pass  # Swept away while we waited for the lock.
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    @functools.cache
    def _sweep(parent: str, prefix: str) -> None:
        for path in Path(parent).glob(f"{prefix}*"):
            # Held, gone, or another user's.
            with contextlib.suppress(BlockingIOError, FileNotFoundError, PermissionError):
                if path.lstat().st_uid == os.geteuid():
                    fd = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if fd is not None:
                        shutil.rmtree(path, ignore_errors=True)
                        os.close(fd)


@contextlib.contextmanager
def leased_directory(kind: str) -> Iterator[Path]:
    """An empty directory in the system's temporary one, removed on leaving."""
    prefix = f"{_PREFIX}{kind}-"
    _sweep(tempfile.gettempdir(), prefix)
    with contextlib.ExitStack() as held:
        while True:
            made = Path(held.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
            if (fd := _lock(made)) is not None:
                break
        held.callback(os.close, fd)
        yield made
