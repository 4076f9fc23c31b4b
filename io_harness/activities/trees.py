"""Directory trees on disk: measured, copied and removed without following a link."""

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_CLONE = 0x40049409  # FICLONE of linux/fs.h: share the blocks (Btrfs, XFS, bcachefs)
_CHUNK = 1 << 30


class Stopped(Exception):
    """The work was told to stop."""


@dataclass(frozen=True)
class Entry:
    path: bytes
    info: os.stat_result


def walk(root: bytes, leave: Collection[bytes] = ()) -> Iterator[Entry]:
    """Everything below `root` but the paths `leave`, folders before what they hold, links not
    followed."""
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.path in leave:
                    continue
                info = entry.stat(follow_symlinks=False)
                yield Entry(entry.path, info)
                if stat.S_ISDIR(info.st_mode):
                    pending.append(entry.path)


def is_within(name: bytes, folders: Collection[bytes]) -> bool:
    """Whether a path is one of `folders` or below one."""
    while name:
        if name in folders:
            return True
        name = name.rpartition(b"/")[0]
    return False


def size_of(root: bytes, leave: Collection[bytes], stop: threading.Event) -> int:
    """Bytes of the regular files at or below `root`, the paths `leave` excepted."""
    info = os.lstat(root)
    if not stat.S_ISDIR(info.st_mode):
        return info.st_size if stat.S_ISREG(info.st_mode) else 0
    total = 0
    for entry in walk(root, leave):
        if stop.is_set():
            raise Stopped
        if stat.S_ISREG(entry.info.st_mode):
            total += entry.info.st_size
    return total


def copy_beneath(
    source: bytes, target: bytes, name: bytes, leave: Collection[bytes], stop: threading.Event
) -> None:
    """Copy the file or folder `name` from below `source` to the same place below `target`, the
    paths `leave` excepted.

    What is there already stays, and nothing is written through a link at the target. Links are
    copied as links, times and permissions are kept; sockets, FIFOs and devices are left out, and so
    is what vanishes meanwhile.
    """
    if not folder_beneath(target, os.path.dirname(name)):
        return
    pending = [(os.path.join(source, name), os.path.join(target, name))]
    folders: list[tuple[bytes, os.stat_result]] = []
    while pending:
        if stop.is_set():
            raise Stopped
        origin, to = pending.pop()
        if origin in leave:
            continue
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            info = os.lstat(origin)
            if not stat.S_ISDIR(info.st_mode):
                _copy_one(origin, to, info)
            elif _made_folder(to, info):
                folders.append((to, info))
                with os.scandir(origin) as found:
                    pending += [(entry.path, os.path.join(to, entry.name)) for entry in found]
    for folder, info in reversed(folders):
        os.utime(folder, ns=(info.st_atime_ns, info.st_mtime_ns))


def folder_beneath(root: bytes, name: bytes) -> bool:
    """Make the folder `name` below `root` and those above it; False if something that is no folder,
    such as a link, is in the way."""
    at = root
    for part in name.split(b"/") if name else ():
        at = os.path.join(at, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(at)
        if not stat.S_ISDIR(os.lstat(at).st_mode):
            return False
    return True


def _made_folder(to: bytes, info: os.stat_result) -> bool:
    """Make a folder; False if something that is none is there."""
    try:
        os.mkdir(to, stat.S_IMODE(info.st_mode) & 0o777 | stat.S_IRWXU)
    except FileExistsError:
        return stat.S_ISDIR(os.lstat(to).st_mode)
    return True


def _copy_one(origin: bytes, to: bytes, info: os.stat_result) -> None:
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(origin), to)
    elif stat.S_ISREG(info.st_mode):
        copy_file(origin, to, stat.S_IMODE(info.st_mode))
        os.utime(to, ns=(info.st_atime_ns, info.st_mtime_ns))


def copy_file(source: bytes, target: bytes, mode: int) -> None:
    """Copy one regular file, sharing its blocks where the file system can.

    Raises:
        FileExistsError: there is something at `target`.
    """
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Without the setuid and setgid bits: the copy is the agent's to change.
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode & 0o777)
        try:
            if not _cloned(reader, writer):
                _copied(reader, writer)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _cloned(reader: int, writer: int) -> bool:
    try:
        import fcntl  # not on Windows

        fcntl.ioctl(writer, _CLONE, reader)
    except (ImportError, OSError):
        return False
    return True


def _copied(reader: int, writer: int) -> None:
    try:
        while os.copy_file_range(reader, writer, _CHUNK):
            pass
        return
    except AttributeError:
        pass  # not on this system
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    with os.fdopen(os.dup(reader), "rb") as source, os.fdopen(os.dup(writer), "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def remove_tree(root: Path) -> None:
    """Remove a folder and all below it, also what its owner took all access from and what is too
    deep for a path's length. It is no error if there is none."""
    try:
        shutil.rmtree(root)
    except FileNotFoundError:
        if root.is_symlink() or root.exists():
            raise
    except PermissionError:
        make_readable(root)
        shutil.rmtree(root)
    except (RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
            raise
        # rm works from folder to folder and knows no depth.
        subprocess.run(["rm", "-rf", "--", root], check=True, capture_output=True)


def make_readable(root: Path) -> None:
    """Give the owner back the access that a command took from itself with chmod."""
    pending = [os.fsencode(root)]
    while pending:
        folder = pending.pop()
        _allow(folder, stat.S_IRWXU)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    _allow(entry.path, stat.S_IRUSR)


def _allow(path: bytes, bits: int) -> None:
    mode = os.stat(path, follow_symlinks=False).st_mode
    if mode & bits != bits:
        os.chmod(path, mode | bits)
