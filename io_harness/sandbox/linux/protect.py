"""Mounts that keep protected paths as they are, in places that a command may write to."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ..plan import Plan
from .cover import cover, may_be_cover
from .view import Bind, is_inside


@contextlib.contextmanager
def protecting(plan: Plan) -> Iterator[tuple[Bind, ...]]:
    """Yields the mounts; on leaving, the covers of absent paths are gone from the host again.

    A path that is absent is covered by an empty file that can't be written. Every directory on the
    way down becomes a mount point, which can't be renamed. A symbolic link can't be covered: it is
    put back when it was changed, and what it leads to is protected as well.
    """
    with contextlib.ExitStack() as stack:
        found: dict[Path, Bind] = {}
        for path in plan.protected:
            for bind in _guards(plan, path, stack):
                # Read-only wins where one protected path is on the way to another.
                if bind.at not in found or not bind.writable:
                    found[bind.at] = bind
        yield tuple(sorted(found.values(), key=lambda bind: len(bind.at.parts)))


def _writable_root(plan: Plan, path: Path) -> Path | None:
    roots = list(plan.writable_roots)
    if plan.mode in ("workspace_write", "full"):
        roots.append(plan.workspace)
    holding = [root for root in roots if is_inside(path, root) and path != root]
    return max(holding, key=lambda root: len(root.parts), default=None)


def _guards(plan: Plan, path: Path, stack: contextlib.ExitStack) -> Iterator[Bind]:
    root = _writable_root(plan, path)
    if root is None:
        return
    here = root
    for part in path.relative_to(root).parts:
        here /= part
        found = _look(here)
        if found is None or may_be_cover(here, found):
            stack.enter_context(cover(here))
            yield Bind(here, here, owned=True)
            return
        if stat.S_ISLNK(found.st_mode):
            stack.enter_context(_put_back(here))
            target = Path(os.path.realpath(here)) / path.relative_to(here)
            if not is_inside(target, here):  # A loop of links leads to itself.
                yield from _guards(plan, target, stack)
            return
        last = here == path or not stat.S_ISDIR(found.st_mode)
        yield Bind(here, here, writable=not last, owned=True)
        if last:
            return


def _look(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


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
