"""Mounts that keep protected paths as they are, in places that a command may write to."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ..plan import Plan
from .cover import covers, may_be_cover
from .view import Bind, is_inside


@contextlib.contextmanager
def protecting(plan: Plan) -> Iterator[tuple[Bind, ...]]:
    """Yields the mounts; on leaving, the covers of absent paths are gone from the host again.

    A path that is absent is covered by an empty file that can't be written. Every directory on the
    way down becomes a mount point, which can't be renamed. A symbolic link can't be covered: it is
    put back when it was changed, and what it leads to is protected as well.
    """
    guards = _Guards(plan)
    for path in plan.protected:
        guards.protect(str(path))
    with contextlib.ExitStack() as stack:
        stack.enter_context(covers(guards.absent))
        for link in guards.links:
            stack.enter_context(_put_back(Path(link)))
        yield guards.binds()


class _Guards:
    """What the protected paths of a plan need, found by one look at each file on the way to them.
    All is text: this is done for each command, and paths as objects take most of its time."""

    def __init__(self, plan: Plan) -> None:
        roots = [str(root) for root in plan.writable_roots]
        if plan.mode in ("workspace_write", "full"):
            roots.append(str(plan.workspace))
        self._roots = sorted(roots, key=len, reverse=True)
        self._seen: dict[str, os.stat_result | None] = {}
        self._writable: dict[str, bool] = {}
        self.absent: dict[str, None] = {}
        self.links: dict[str, None] = {}

    def binds(self) -> tuple[Bind, ...]:
        """Outer before inner."""
        found = sorted(self._writable.items(), key=lambda item: item[0].count("/"))
        return tuple(
            Bind(place, place, writable=writable, owned=True)
            for place, writable in ((Path(path), writable) for path, writable in found)
        )

    def protect(self, path: str) -> None:
        root = next((root for root in self._roots if is_inside(path, root) and path != root), None)
        if root is None:
            return
        here = root.rstrip("/")
        for part in path[len(here) + 1 :].split("/"):
            here = f"{here}/{part}"
            found = self._look(here)
            if found is None or may_be_cover(here, found):
                self.absent[here] = None
                self._bind(here, writable=False)
                return
            if stat.S_ISLNK(found.st_mode):
                self.links[here] = None
                target = os.path.realpath(here) + path[len(here) :]
                if not is_inside(target, here):  # A loop of links leads to itself.
                    self.protect(target)
                return
            last = here == path or not stat.S_ISDIR(found.st_mode)
            self._bind(here, writable=not last)
            if last:
                return

    def _bind(self, path: str, *, writable: bool) -> None:
        """Read-only wins where one protected path is on the way to another."""
        self._writable[path] = writable and self._writable.get(path, True)

    def _look(self, path: str) -> os.stat_result | None:
        if path not in self._seen:
            try:
                self._seen[path] = os.lstat(path)
            except FileNotFoundError:
                self._seen[path] = None
        return self._seen[path]


@contextlib.contextmanager
def _put_back(link: Path) -> Iterator[None]:
    target = os.readlink(link)
    parent = os.open(link.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield
        _restore_link(link.name, target, parent)
    finally:
        os.close(parent)


def _restore_link(name: str, target: str, parent: int) -> None:
    try:
        mode = os.lstat(name, dir_fd=parent).st_mode
    except FileNotFoundError:
        os.symlink(target, name, dir_fd=parent)
        return
    if stat.S_ISLNK(mode) and os.readlink(name, dir_fd=parent) == target:
        return
    if stat.S_ISDIR(mode):
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)
    os.symlink(target, name, dir_fd=parent)
