"""Writes a set of changed files into a directory, each by a rename and only over what was expected."""

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from io_harness.activities.changes import shown
from io_harness.activities.ignore_rules import TEMPORARY
from io_harness.activities.trees import copy_file, remove_tree


class Moved(Exception):
    """A file is no longer what the merge was made from. Files written before it stay written."""


class Unwritable(Exception):
    """The operating system refuses to let us write; nothing was written."""


@dataclass(frozen=True)
class Version:
    mode: str
    """git's: 100644, 100755 or 120000 (a link)."""
    blob: str


@dataclass(frozen=True)
class Write:
    """One file's way from `old` to `new`; None: it isn't there."""

    path: bytes
    old: Version | None
    new: Version | None


def parse_writes(printed: bytes) -> list[Write]:
    """Reads `git diff-tree -r -z --raw --no-renames --no-abbrev`."""
    fields = iter(printed.split(b"\0"))
    writes: list[Write] = []
    for field in fields:
        if field.startswith(b":"):
            old_mode, new_mode, old, new, _ = field[1:].decode().split(" ")
            writes.append(Write(next(fields), _version(old_mode, old), _version(new_mode, new)))
    return writes


def _version(mode: str, blob: str) -> Version | None:
    return None if mode == "000000" else Version(mode, blob)


def write_back(directory: Path, staged: Path, writes: list[Write], mark: str) -> None:
    """Bring every file of `writes` from its old to its new version.

    First everything is checked, and written to a folder beside; only then do the removals and
    renames begin, so that a full disk or a missing permission changes nothing.

    Args:
        staged: Holds the new versions.
        mark: Part of the folder's name, the same on every attempt.

    Raises:
        Moved, Unwritable.
    """
    root = os.fsencode(directory)
    for write in writes:
        _check(root, write)
    beside = directory / TEMPORARY.replace("*", mark)
    try:
        remove_tree(beside)  # left by an attempt that was killed
        beside.mkdir(mode=0o700)
        ready: list[tuple[Write, bytes]] = []
        for number, write in enumerate(writes):
            folder = _existing_folder(root, write.path)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(f"the worker may not write to {shown(folder)}")
            if write.new is not None:
                ready.append((write, os.path.join(os.fsencode(beside), b"%d" % number)))
                _put(root, os.fsencode(staged), write, ready[-1][1])
    except OSError as error:
        remove_tree(beside)
        raise Unwritable(str(error)) from error
    try:
        _move(root, writes, ready)
    finally:
        remove_tree(beside)


def _move(root: bytes, writes: list[Write], ready: list[tuple[Write, bytes]]) -> None:
    for write in writes:
        if write.new is None and _check(root, write):
            os.unlink(os.path.join(root, write.path))
            _remove_empty_parents(root, write.path)
    for write, temporary in ready:
        if not _check(root, write):
            continue
        at = os.path.join(root, write.path)
        if not _made_parents(root, write.path) or _is_folder(at):
            raise Moved(shown(write.path))
        os.replace(temporary, at)


def _check(root: bytes, write: Write) -> bool:
    """Whether the write is still to be done.

    Raises:
        Moved: neither the old nor the new version is there.
    """
    found = _found(root, write.path)
    if found not in (write.old, write.new):
        raise Moved(shown(write.path))
    return found != write.new


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _put(root: bytes, staged: bytes, write: Write, temporary: bytes) -> None:
    """Make the new version under a temporary name, with the old one's mode and owner."""
    origin = os.path.join(staged, write.path)
    assert write.new is not None
    if write.new.mode == "120000":
        os.symlink(os.readlink(origin), temporary)
        _give(temporary, os.lstat(_existing_folder(root, write.path)))
        return
    copy_file(origin, temporary, 0o666)
    runs = write.new.mode == "100755"
    try:
        model = os.lstat(os.path.join(root, write.path))
        if stat.S_ISREG(model.st_mode):
            mode = stat.S_IMODE(model.st_mode) & 0o777
            os.chmod(temporary, mode if bool(mode & 0o100) == runs else _with_x(mode, runs))
    except (FileNotFoundError, NotADirectoryError):
        model = os.lstat(_existing_folder(root, write.path))
        os.chmod(temporary, _with_x(stat.S_IMODE(os.lstat(temporary).st_mode), runs))
    _give(temporary, model)


def _made_parents(root: bytes, path: bytes) -> bool:
    """Make the folders above `path`; False if something else is in their place."""
    at = root
    for part in path.split(b"/")[:-1]:
        above, at = at, os.path.join(at, part)
        if not os.path.lexists(at):
            os.mkdir(at)
            _give(at, os.lstat(above))
        elif not _is_folder(at):
            return False
    return True


def _give(path: bytes, model: os.stat_result) -> None:
    """What root makes in somebody's directory is theirs."""
    if os.geteuid() == 0 and model.st_uid != 0:
        os.chown(path, model.st_uid, model.st_gid, follow_symlinks=False)


def _with_x(mode: int, runs: bool) -> int:
    """The mode with execution for whoever may read, or for nobody."""
    return mode | (mode & 0o444) >> 2 if runs else mode & ~0o111


def _existing_folder(root: bytes, path: bytes) -> bytes:
    """The innermost real folder above `path` that exists."""
    at = root
    for part in path.split(b"/")[:-1]:
        below = os.path.join(at, part)
        if not _is_folder(below):
            break
        at = below
    return at


def _remove_empty_parents(root: bytes, path: bytes) -> None:
    while path := os.path.dirname(path):
        try:
            os.rmdir(os.path.join(root, path))
        except OSError:
            return  # still holds something


def _found(root: bytes, path: bytes) -> Version | None:
    """What is at `path`, as git would record it; a folder or a link above it counts as nothing.

    Raises:
        Moved: it is no file, such as a pipe, which would have to be waited for.
    """
    at = os.path.join(root, path)
    if os.path.dirname(at) != _existing_folder(root, path):
        return None
    try:
        info = os.lstat(at)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(info.st_mode):
        return None
    if stat.S_ISLNK(info.st_mode):
        target = os.readlink(at)
        return Version("120000", _blob_id(len(target), [target]))
    if not stat.S_ISREG(info.st_mode):
        raise Moved(shown(path))
    mode = "100755" if info.st_mode & 0o100 else "100644"
    with open(at, "rb") as file:
        return Version(mode, _blob_id(info.st_size, iter(lambda: file.read(1 << 20), b"")))


def _blob_id(size: int, pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
