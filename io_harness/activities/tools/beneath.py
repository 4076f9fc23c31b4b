"""The one way to files of a working copy. A path is walked component by component from an open
directory, without following links in the kernel, so what was checked is what is used: nothing can be
swapped in between, and no link leads outside.

POSIX only: it needs `dir_fd`. Linux is tested; macOS uses the same calls and was not run.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import (
    AccessDenied,
    AlreadyExists,
    BrokenLink,
    IsADirectory,
    NotADirectory,
    NotARegularFile,
    NotFound,
    OutsideWorkspace,
    StaleFile,
    ToolError,
)

_LONGEST_PATH, _DEEPEST = 4000, 255
_MAX_LINKS = 40  # as the Linux kernel
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO that was swapped in would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFLNK: "a symbolic link",
}


@dataclass(frozen=True)
class Place:
    """A resolved path: an open directory and a name in it that is no symbolic link."""

    path: str
    """Relative to the workspace, links resolved; `.` for the workspace itself."""
    shown: str
    """As the caller wrote it."""
    directory: int
    """Descriptor of the deepest directory that exists."""
    name: str
    missing: tuple[str, ...]
    """Directories that don't exist yet between `directory` and `name`."""
    via_link: bool
    """Whether the caller's path went through a symbolic link."""

    def stat(self) -> os.stat_result | None:
        """Status of the entry itself; None if there is none."""
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def existing(self) -> os.stat_result:
        """Raises `NotFound`, or `BrokenLink` if a link led here."""
        status = self.stat()
        if status is not None:
            return status
        if self.via_link:
            raise BrokenLink(f"{self.shown} is a link to {self.path}, which does not exist")
        raise NotFound(f"{self.shown} does not exist")

    def regular(self) -> os.stat_result:
        """Raises unless there is an ordinary file."""
        status = self.existing()
        self._refuse_other_kinds(status)
        return status

    def _refuse_other_kinds(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectory(f"{self.shown} is a directory; use list_files")
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not an ordinary file")
            raise NotARegularFile(f"{self.shown} is {kind}; only ordinary files are read or edited")

    def open_read(self) -> int:
        """Descriptor of an ordinary file. Never blocks. The caller closes it."""
        self.regular()
        with _told(self.shown):
            descriptor = os.open(self.name, _READ, dir_fd=self.directory)
        try:
            self._refuse_other_kinds(os.fstat(descriptor))
        except ToolError:
            os.close(descriptor)
            raise
        return descriptor

    def open_directory(self) -> int:
        """Descriptor of a directory. The caller closes it."""
        if not stat.S_ISDIR(self.existing().st_mode):
            raise NotADirectory(f"{self.shown} is a file; use read_file")
        with _told(self.shown):
            return os.open(self.name, _DIRECTORY, dir_fd=self.directory)

    def replace(
        self, data: bytes, expected: os.stat_result | None, like: "Place | None" = None
    ) -> None:
        """Put `data` there in one step, keeping mode, owner and extended attributes.

        No fsync: after a crash the copy is made again from a snapshot.

        Args:
            expected: status of the file the data was made from; None if there must be none.
            like: a file whose mode, owner and attributes a new file takes over.

        Raises:
            StaleFile: the file changed meanwhile.
        """
        with self._parent() as parent, _told(self.shown):
            temporary = f".{secrets.token_hex(8)}.io-harness-tmp"
            pattern = self if expected is not None else like
            mode = 0o666 if pattern is None else 0o600
            descriptor = os.open(temporary, _CREATE, mode, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    if pattern is not None:
                        pattern._pass_attributes(file.fileno())
                self._refuse_stale(expected)
                self._move_in(temporary, parent, new=expected is None)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise

    def _move_in(self, temporary: str, parent: int, *, new: bool) -> None:
        if not new:
            os.replace(temporary, self.name, src_dir_fd=parent, dst_dir_fd=parent)
            return
        try:  # link, unlike rename, refuses to replace a file that appeared meanwhile
            os.link(
                temporary, self.name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False
            )
        except FileExistsError:
            raise StaleFile(f"{self.shown} appeared while it was being written") from None
        os.unlink(temporary, dir_fd=parent)

    def _pass_attributes(self, descriptor: int) -> None:
        """Give another open file this one's owner, mode and extended attributes."""
        source = self.open_read()
        try:
            status = os.fstat(source)
            with suppress(PermissionError):  # only root may give a file away
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
            for attribute in os.listxattr(source) if hasattr(os, "listxattr") else ():
                with suppress(OSError):  # not every file system or user may set every one
                    os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)

    def set_executable(self, executable: bool) -> None:
        """Set or clear the executable bits, as git does: for whoever may read."""
        descriptor = self.open_read()
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            bits = (mode & 0o444) >> 2
            os.fchmod(descriptor, mode | bits if executable else mode & ~0o111)
        finally:
            os.close(descriptor)

    def _refuse_stale(self, expected: os.stat_result | None) -> None:
        now = self.stat()
        if expected is not None and (now is None or _identity(now) != _identity(expected)):
            raise StaleFile(f"{self.shown} changed while it was being edited; read it again")

    def remove(self, expected: os.stat_result) -> None:
        """Raises `StaleFile` if the file changed meanwhile."""
        self._refuse_stale(expected)
        with _told(self.shown):
            os.unlink(self.name, dir_fd=self.directory)

    @contextmanager
    def _parent(self) -> Iterator[int]:
        """The directory that holds `name`, made if need be."""
        opened: list[int] = []
        try:
            parent = self.directory
            for name in self.missing:
                with _told(self.shown):
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=parent)
                    parent = os.open(name, _DIRECTORY, dir_fd=parent)
                opened.append(parent)
            yield parent
        finally:
            for descriptor in opened:
                os.close(descriptor)


class Beneath:
    """Files beneath one directory."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    @contextmanager
    def place(self, path: str, *, follow: bool = True) -> Iterator[Place]:
        """Resolve `path` (relative to the workspace, or absolute within it).

        Args:
            follow: whether a link that the path itself names is followed; links on the way are.

        Raises:
            OutsideWorkspace: the path, or a link on its way, leads out.
            NotADirectory, AccessDenied: on the way.
        """
        walk = _Walk(self._root, path, follow)
        try:
            yield walk.run()
        finally:
            walk.close()

    @contextmanager
    def directory(self, path: str) -> Iterator[tuple[int, str]]:
        """An open directory and its resolved path."""
        with self.place(path) as place:
            descriptor = place.open_directory()
            try:
                yield descriptor, place.path
            finally:
                os.close(descriptor)


class _Walk:
    def __init__(self, root: Path, path: str, follow: bool) -> None:
        self._root = root
        self._follow_last = follow
        self._shown = path
        self._links = 0
        with _told("the workspace"):
            self._open = [os.open(root, _DIRECTORY)]
        self._names: list[str] = []

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def run(self) -> Place:
        if "\0" in self._shown:
            raise NotFound("a path can't contain a NUL character")
        if not self._shown:
            raise NotFound("the path is empty; use '.' for the workspace")
        if len(os.fsencode(self._shown)) > _LONGEST_PATH or self._shown.count("/") > _DEEPEST:
            raise AccessDenied(
                f"{self._shown[:200]}... is too long: at most {_LONGEST_PATH} bytes and {_DEEPEST} "
                "folders, which is where other programs stop"
            )
        todo = self._components(self._shown)
        while todo:
            name = todo.pop(0)
            if name == "..":
                self._up()
                continue
            with _told(self._shown):
                found = _lstat(name, self._open[-1])
            if found is None:
                if ".." in todo:
                    raise NotFound(f"{self._shown} does not exist")
                return self._place((name, *todo))
            if stat.S_ISLNK(found.st_mode) and (todo or self._follow_last):
                todo = self._follow(name) + todo
            elif todo:
                self._down(name)
            else:
                return self._place((name,))
        return self._place((".",))

    def _place(self, rest: tuple[str, ...]) -> Place:
        *missing, name = rest
        path = "/".join([*self._names, *(n for n in rest if n != ".")]) or "."
        return Place(
            path, self._shown, self._open[-1], name, tuple(missing), via_link=self._links > 0
        )

    def _components(self, path: str) -> list[str]:
        pure = PurePosixPath(path)
        if not pure.is_absolute():
            return list(pure.parts)
        while len(self._open) > 1:
            self._up()
        if not pure.is_relative_to(self._root):
            raise OutsideWorkspace(
                f"{self._shown} leads to {path}, outside the workspace; "
                "paths are relative to the workspace"
            )
        return list(pure.relative_to(self._root).parts)

    def _up(self) -> None:
        if len(self._open) == 1:
            raise OutsideWorkspace(f"{self._shown} leads outside the workspace")
        os.close(self._open.pop())
        self._names.pop()

    def _down(self, name: str) -> None:
        with _told(self._shown):
            self._open.append(os.open(name, _DIRECTORY, dir_fd=self._open[-1]))
        self._names.append(name)

    def _follow(self, name: str) -> list[str]:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise BrokenLink(f"{self._shown} goes through more than {_MAX_LINKS} links")
        with _told(self._shown):
            return self._components(os.readlink(name, dir_fd=self._open[-1]))


def _lstat(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _told(shown: str) -> Iterator[None]:
    """Turns the operating system's refusals into errors for the model."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"{shown} does not exist") from None
    except NotADirectoryError:
        raise NotADirectory(f"a part of {shown} is a file, not a directory") from None
    except FileExistsError:
        raise AlreadyExists(f"{shown} already exists") from None
    except IsADirectoryError:
        raise IsADirectory(f"{shown} is a directory") from None
    except PermissionError as error:
        raise AccessDenied(f"{shown}: {error.strerror}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StaleFile(f"{shown} was replaced by a link meanwhile") from None
        if error.errno in (
            errno.ENAMETOOLONG,
            errno.ENOSPC,
            errno.EROFS,
            errno.EDQUOT,
            errno.EINVAL,
        ):
            raise AccessDenied(f"{shown}: {error.strerror}") from None
        raise
