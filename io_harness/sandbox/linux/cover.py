"""Files that stand where a protected path is absent, while commands run.

A mount needs something to lie on. A cover is known by its looks, so that one that a killed process
left behind is taken over and removed by the next command there. It is held by a shared lock, so
that the last holder removes it, whichever process that is: the removal of a file takes the mounts
on it away in every namespace.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MADE_AT = 981_173_106
"""Modification time of every cover, in seconds: an arbitrary moment of 2001."""


def _content(path: Path) -> bytes:
    """Nothing; but git takes a repository with an empty `commondir` for a broken one. This one says
    what holds without it."""
    return b".\n" if path.name == "commondir" else b""


def may_be_cover(path: Path, found: os.stat_result) -> bool:
    """A file like a cover that nobody may write. Only its time tells a cover from someone's own, and
    on some file systems content and time are set a moment after the file is made."""
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o222:
        return False
    return found.st_size in (0, len(_content(path)))


@contextlib.contextmanager
def cover(path: Path) -> Iterator[None]:
    """A small file: on common file systems a hundred times cheaper to make than a directory."""
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fd = _hold(path, parent)
        try:
            yield
        finally:
            try:
                _remove_if_last(path.name, parent, fd)
            finally:
                os.close(fd)
    finally:
        os.close(parent)


def _hold(path: Path, parent: int) -> int:
    """Makes the cover, or joins those who have it, as a descriptor with a shared lock."""
    while True:
        try:
            fd = _make(path, parent)
        except FileExistsError:
            try:
                fd = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
            except FileNotFoundError:
                continue
        fcntl.flock(fd, fcntl.LOCK_SH)
        if _is_there(path.name, parent, fd):
            return fd
        os.close(fd)  # Its last holder removed it meanwhile.


def _make(path: Path, parent: int) -> int:
    """Made without a name, and named when it is whole: who is killed meanwhile leaves nothing that
    is not known for a cover."""
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o444, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
        # A file system that has no such files.
        fd = os.open(path.name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444, dir_fd=parent)
        _fill(fd, path)
        return fd
    try:
        _fill(fd, path)
        os.link(f"/proc/self/fd/{fd}", path.name, dst_dir_fd=parent, follow_symlinks=True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _fill(fd: int, path: Path) -> None:
    os.write(fd, _content(path))
    os.utime(fd, (_MADE_AT, _MADE_AT))


def _is_there(name: str, parent: int, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(name, dir_fd=parent))
    except FileNotFoundError:
        return False


def _remove_if_last(name: str, parent: int, fd: int) -> None:
    """Of several who leave at once the kernel gives at least one the lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    ours = int(os.fstat(fd).st_mtime) == _MADE_AT
    if ours and _is_there(name, parent, fd):
        os.unlink(name, dir_fd=parent)
