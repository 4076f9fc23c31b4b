"""Garbage collection of one host's data: snapshots, kept outputs and working copies of runs that
nobody can come back to.

What to remove is decided by a pure function, from what is on disk and from what Temporal still knows.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from .checkout import CopyPaths
from .ignored import in_thread
from .locks import file_lock
from .settings import Settings
from .shared_store import SharedSnapshotStore
from .store import REFS, SnapshotStore, UnknownSnapshot
from .trees import remove_tree

_DAY = 86_400.0
_LOCK_SUFFIX = ".lock"


@dataclass(frozen=True)
class Ages:
    """How long things stay that nothing is known to need."""

    run_days: float = 7
    """Since the last sign of a run that Temporal doesn't know (any more)."""
    copy_days: float = 1
    """Since the last use of a working copy of a run that ended; it can be made again."""
    object_days: float = 30
    """For git objects that no ref leads to: those of steps that a reset left behind."""


@dataclass(frozen=True)
class KeptRun:
    """What there is of one run on this host."""

    key: str
    used_at: float
    """Seconds since 1970 of the last sign of it."""
    has_copy: bool
    has_snapshots: bool
    namespace: str | None
    """Id of the Temporal namespace that it belongs to; None if that was never noted."""


@dataclass(frozen=True)
class KnownRuns:
    """Keys of the runs that one Temporal namespace knows. A closed run that is still known can be
    reset."""

    namespace: str
    """The namespace's id, which no other namespace of any cluster has."""
    running: Collection[str]
    closed: Collection[str]


@dataclass(frozen=True)
class Garbage:
    copies: tuple[str, ...] = ()
    """Keys of runs whose working copy goes."""
    runs: tuple[str, ...] = ()
    """Keys of runs of which everything goes."""


def plan(kept: Collection[KeptRun], known: KnownRuns, ages: Ages, now: float) -> Garbage:
    """What may be removed. A running run keeps everything; one that can be reset loses at most its
    working copy; one that Temporal doesn't know loses everything once it is old enough. Runs of
    another namespace, or of none that was noted, keep everything, unless they never got as far as a
    snapshot."""
    copies: list[str] = []
    runs: list[str] = []
    for run in sorted(kept, key=lambda run: run.key):
        age_days = (now - run.used_at) / _DAY
        if run.key in known.running or (run.has_snapshots and run.namespace != known.namespace):
            continue
        if run.key not in known.closed and age_days > ages.run_days:
            runs.append(run.key)
        elif run.key in known.closed and run.has_copy and age_days > ages.copy_days:
            copies.append(run.key)
    return Garbage(tuple(copies), tuple(runs))


async def kept_runs(settings: Settings, store: SnapshotStore) -> tuple[KeptRun, ...]:
    """Every run of which this host holds anything."""
    await store.ready()
    listed = await store.git().out("for-each-ref", "--format=%(refname)", REFS)
    keys = {line.split("/")[2] for line in listed.decode().split()}
    namespaces: dict[str, str | None] = dict.fromkeys(keys)
    for key in keys:
        with contextlib.suppress(UnknownSnapshot):
            namespaces[key] = (await store.first(key))[1].namespace
    return await asyncio.to_thread(_on_disk, settings, store, namespaces)


def _on_disk(
    settings: Settings, store: SnapshotStore, namespaces: Mapping[str, str | None]
) -> tuple[KeptRun, ...]:
    copies, outputs = settings.data_dir / "runs", settings.data_dir / "outputs"
    names = {entry.name.removesuffix(_LOCK_SUFFIX) for entry in _entries(copies)}
    names |= {entry.name for entry in _entries(outputs)} | set(namespaces)
    kept: list[KeptRun] = []
    for name in sorted(names):
        copy = copies / name
        signs = [copy, copy / "state", copies / f"{name}{_LOCK_SUFFIX}", outputs / name]
        signs += _entries(store.path / REFS / name)
        kept.append(
            KeptRun(
                key=name,
                used_at=max(map(_changed_at, signs)),
                has_copy=copy.exists(),
                has_snapshots=name in namespaces,
                namespace=namespaces.get(name),
            )
        )
    return tuple(kept)


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _changed_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


async def collect(garbage: Garbage, settings: Settings, store: SnapshotStore, ages: Ages) -> None:
    """Remove what was planned, then the git objects that nothing leads to any more."""
    for key in (*garbage.copies, *garbage.runs):
        paths = CopyPaths.of(settings, key)
        async with file_lock(paths.lock):
            await _remove(paths.directory)
            paths.lock.unlink(missing_ok=True)
    if garbage.runs and isinstance(store, SharedSnapshotStore):
        await store.drop(garbage.runs)
    for key in garbage.runs:
        refs = await store.git().out("for-each-ref", "--format=delete %(refname)", f"{REFS}/{key}/")
        await store.git().run("update-ref", "--stdin", stdin=refs)
        await _remove(settings.data_dir / "outputs" / key)
    if garbage.runs:
        before = int(time.time() - ages.object_days * _DAY)
        # Refs stay loose: their files' times tell when a run was last used.
        await store.git().run("-c", "gc.packRefs=false", "gc", "--quiet", f"--prune=@{before}")


async def _remove(folder: Path) -> None:
    await in_thread(lambda _: remove_tree(folder))
