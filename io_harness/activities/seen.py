"""The tree of a working copy, as git makes it, without git where only files changed that it has.

Which files are new to git and which are ignored is for git to say. But a look at the copy that finds
no name besides those of the last one, and its ignore files unchanged, leaves only what files hold.
"""

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .git import Git
from .look import Look, NamesDiffer, TooMany, look, suspects
from .staging import list_ignored, stage_all

if TYPE_CHECKING:
    from .objects import Entry, Objects

_COPIES = 32
_LARGEST_FILE = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO that was swapped in would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OnlyGitKnows(Exception):
    """What has become of a file."""


@dataclass(frozen=True)
class Seen:
    """A copy as it was."""

    tree: str
    look: Look
    ignored: Collection[bytes]


class SeenCopies:
    """How a worker last saw the copies that it worked on."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Path, Seen] = OrderedDict()
        self._large: set[Path] = set()

    async def tree(self, git: Git, base: str) -> str:
        """Write what git's work tree holds, ignored files excepted, and return the tree.

        Args:
            git: On a copy that nobody else works on.
            base: The tree that the copy was put at.

        Raises:
            GitError: a file can't be read.
        """
        assert git.work_tree is not None
        root = git.work_tree
        if root in self._large:
            return await _staged(git)
        seen = self._seen.pop(root, None)
        now: Seen | str | None = None
        if seen is not None and seen.tree == base:
            now = await asyncio.to_thread(_without_git, git.git_dir / "objects", root, seen)
        if now is None:
            now = await self._by_git(git, root)
        if isinstance(now, str):
            return now
        self._seen[root] = now
        while len(self._seen) > _COPIES:
            self._seen.popitem(last=False)
        return now.tree

    async def _by_git(self, git: Git, root: Path) -> Seen | str:
        ignored = frozenset(await list_ignored(git))
        try:
            # Before git reads the files: a change in between then shows the next time.
            found = await asyncio.to_thread(look, os.fsencode(root), ignored)
        except TooMany:
            self._large.add(root)
            return await _staged(git)
        except OSError:
            return await _staged(git)  # it may mend what can't be read
        return Seen(await _staged(git), found, ignored)


async def _staged(git: Git) -> str:
    await stage_all(git)
    return await git.line("write-tree")


def _without_git(directory: Path, root: Path, seen: Seen) -> Seen | None:
    from .objects import Objects  # loads libgit2

    objects = Objects(directory)
    changed: dict[bytes, Entry | None] = {}
    try:
        found = look(os.fsencode(root), seen.ignored, seen.look)
        for path, gone in suspects(seen.look, found):
            was = objects.entry(seen.tree, path)
            if was is None and path not in seen.ignored:
                raise OnlyGitKnows
            now = None if was is None or gone else _read(objects, root, path, was)
            if os.path.basename(path) == b".gitignore" and (was is None or now != was):
                raise OnlyGitKnows
            if now != was:
                changed[path] = now
    except (OSError, TooMany, NamesDiffer, OnlyGitKnows):
        return None
    return Seen(objects.replaced(seen.tree, changed), found, seen.ignored)


def _read(objects: "Objects", root: Path, path: bytes, was: "Entry") -> "Entry":
    """A file as git has it, its content written where it isn't what it was.

    Raises:
        OnlyGitKnows: it is large, or neither file nor link.
        OSError: it can't be read, or a folder above it is none any more.
    """
    from .objects import Entry

    *folders, name = path.split(b"/")
    with ExitStack() as opened:
        at = _opened(opened, root, _FOLDER)
        for folder in folders:
            at = _opened(opened, folder, _FOLDER, at)
        status = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return Entry(stat.S_IFLNK, objects.write_blob(os.readlink(name, dir_fd=at), was))
        if not stat.S_ISREG(status.st_mode):
            raise OnlyGitKnows
        file = _opened(opened, name, _READ, at)
        content = _content(file)
        mode = 0o755 if os.fstat(file).st_mode & stat.S_IXUSR else 0o644
        return Entry(stat.S_IFREG | mode, objects.write_blob(content, was))


def _opened(stack: ExitStack, name: Path | bytes, flags: int, at: int | None = None) -> int:
    descriptor = os.open(name, flags, dir_fd=at)
    stack.callback(os.close, descriptor)
    return descriptor


def _content(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    left = _LARGEST_FILE
    while piece := os.read(descriptor, left + 1):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise OnlyGitKnows
    return b"".join(pieces)
