"""Brings along what git ignores in a source directory: environments, installed modules."""

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from io_harness.workflows.contract import DirectorySource

from .failure import failure
from .git import Git
from .relocate import relocate
from .source import left_behind
from .staging import list_ignored
from .trees import copy_beneath, is_within, size_of

_MIB = 1024 * 1024
_NAMED = 5
_T = TypeVar("_T")


async def bring_ignored(
    source: DirectorySource, directory: Path, tree: str, target: Path, scratch: Git
) -> None:
    """Copy the source's ignored files into a checkout. What the checkout has already stays.

    Args:
        tree: The source's files that are not ignored.
        scratch: git on the store with an index and an excludes file that nobody else uses.

    Raises:
        ApplicationError: IgnoredTooLarge, SourceUnreadable.
    """
    if source.ignored == "leave":
        return
    git = replace(scratch, work_tree=directory)
    await git.run("read-tree", tree)
    leave = left_behind(source, directory, git.git_dir.parent)
    names = [name for name in await list_ignored(git) if not is_within(name, leave)]
    try:
        await in_thread(lambda stop: _copy(source, directory, names, leave, target, stop))
    except PermissionError as error:
        raise failure(
            "SourceUnreadable",
            f"workspace.path: the worker may not read the ignored file {error.filename!r}; make it "
            "readable, or list it in workspace.exclude",
        ) from error


def _copy(
    source: DirectorySource,
    directory: Path,
    names: list[bytes],
    leave: set[bytes],
    target: Path,
    stop: threading.Event,
) -> None:
    origin, to = os.fsencode(directory), os.fsencode(target)
    left = {os.path.join(origin, name) for name in leave}
    sizes = {name: size_of(os.path.join(origin, name), left, stop) for name in names}
    _check_limit(source, sizes)
    for name in names:
        copy_beneath(origin, to, name, left, stop)
    relocate(to, names, origin, stop)


def _check_limit(source: DirectorySource, sizes: dict[bytes, int]) -> None:
    total = sum(sizes.values())
    if total <= source.ignored_limit_mb * _MIB:
        return
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_NAMED]
    named = ", ".join(f"{os.fsdecode(name)} ({_mib(size)})" for name, size in largest if size)
    raise failure(
        "IgnoredTooLarge",
        f"workspace: the files that git ignores come to {_mib(total)}, above the limit of "
        f"{source.ignored_limit_mb} MiB (workspace.ignored_limit_mb); the largest are {named}. List "
        "what the task doesn't need in workspace.exclude, raise the limit, or set "
        "workspace.ignored to 'leave' and make them in workspace.setup",
    )


def _mib(size: int) -> str:
    return f"{size / _MIB:,.1f} MiB"


async def in_thread(work: Callable[[threading.Event], _T]) -> _T:
    """Run blocking work in a thread. On cancellation it is told to stop and waited for, so that it
    never goes on behind the back of whoever tries again."""
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([running])
        running.exception()  # seen: what matters is the cancellation
        raise
