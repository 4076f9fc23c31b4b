"""Files that stand where a protected path is absent, while commands run.

A mount needs something to lie on. A cover is known by its looks, so that one that a killed process
left behind is taken over and removed by the next command there. It is held by a shared lock, so
that the last holder removes it, whichever process that is: the removal of a file takes the mounts
on it away in every namespace.

The covers of one directory are names of one file where the file system allows it: to make a file
costs many times as much as to give it another name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator

_MADE_AT = 981_173_106
"""Modification time of every cover, in seconds: an arbitrary moment of 2001."""


def _content(name: str) -> bytes:
    """Nothing; but git takes a repository with an empty `commondir` for a broken one. This one says
    what holds without it."""
    return b".\n" if name == "commondir" else b""


def may_be_cover(path: str, found: os.stat_result) -> bool:
    """A file like a cover that nobody may write. Only its time tells a cover from someone's own, and
    on some file systems content and time are set a moment after the file is made."""
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o222:
        return False
    return found.st_size in (0, len(_content(os.path.basename(path))))


@contextlib.contextmanager
def covers(paths: Iterable[str]) -> Iterator[None]:
    """Covers these paths: small files, which are far cheaper to make than directories."""
    with contextlib.ExitStack() as stack:
        directories: dict[str, _Directory] = {}
        for path in paths:
            parent, name = os.path.split(path)
            if parent not in directories:
                directories[parent] = _Directory(parent)
                stack.callback(directories[parent].uncover)
            directories[parent].cover(name)
        yield


class _Directory:
    """The covers in one directory."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._held: dict[int, list[str]] = {}
        """Descriptors of files with a shared lock, and the names that they have for us."""
        self._made: dict[bytes, int] = {}
        """Those of them that can be given further names, by content."""

    def cover(self, name: str) -> None:
        """Makes the cover, or joins those who have it."""
        while not (self._make(name) or self._join(name)):
            pass  # Its last holder removed it meanwhile.

    def _make(self, name: str) -> bool:
        """Made without a name, and named when it is whole and locked: who is killed meanwhile leaves
        nothing that is not known for a cover. False where something is already."""
        content = _content(name)
        if content not in self._made:
            try:
                fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o444, dir_fd=self._fd)
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
                    return self._make_named(name)
                raise
            self._held[fd] = []
            _fill(fd, content)
            fcntl.flock(fd, fcntl.LOCK_SH)
            self._made[content] = fd
        fd = self._made[content]
        try:
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self._fd, follow_symlinks=True)
        except FileExistsError:
            return False
        except FileNotFoundError:
            del self._made[content]  # All its names were taken away, and then it gets no other.
            return False
        self._held[fd].append(name)
        return True

    def _make_named(self, name: str) -> bool:
        """On a file system that has no files without a name."""
        try:
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444, dir_fd=self._fd)
        except FileExistsError:
            return False
        _fill(fd, _content(name))
        return self._hold(fd, name)

    def _join(self, name: str) -> bool:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._fd)
        except FileNotFoundError:
            return False
        return self._hold(fd, name)

    def _hold(self, fd: int, name: str) -> bool:
        """Takes over the descriptor. False when the file has lost the name by then."""
        known = next((other for other in self._held if _same_file(other, fd)), None)
        if known is not None:
            # Two locks of our own on one file would each keep the other from being the last.
            os.close(fd)
            fd = known
        else:
            self._held[fd] = []
            fcntl.flock(fd, fcntl.LOCK_SH)
        if not self._is_there(name, fd):
            return False
        self._held[fd].append(name)
        return True

    def uncover(self) -> None:
        try:
            for fd, names in self._held.items():
                self._remove_if_last(fd, names)
        finally:
            for fd in (*self._held, self._fd):
                os.close(fd)

    def _remove_if_last(self, fd: int, names: list[str]) -> None:
        """Of several who leave at once the kernel gives at least one the lock."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if int(os.fstat(fd).st_mtime) != _MADE_AT:
            return
        for name in names:
            if self._is_there(name, fd):
                os.unlink(name, dir_fd=self._fd)
        if os.fstat(fd).st_nlink:
            self._remove_names_of_others(fd)

    def _remove_names_of_others(self, fd: int) -> None:
        """Names that those who left earlier gave the file, and left to the last."""
        with os.scandir(self._fd) as entries:
            same = [entry.name for entry in entries if entry.inode() == os.fstat(fd).st_ino]
        for name in same:
            if self._is_there(name, fd):
                os.unlink(name, dir_fd=self._fd)

    def _is_there(self, name: str, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.lstat(name, dir_fd=self._fd))
        except FileNotFoundError:
            return False


def _fill(fd: int, content: bytes) -> None:
    os.write(fd, content)
    os.utime(fd, (_MADE_AT, _MADE_AT))


def _same_file(one: int, other: int) -> bool:
    return os.path.samestat(os.fstat(one), os.fstat(other))
