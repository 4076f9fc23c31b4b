"""Lands by writing the change back into the source directory.

The source may have moved since the run began, so what is written is a three-way merge of the
source as it is now and the change. The source as it was found and the merge are noted as a commit
first: an attempt that was killed half-way is completed by the next one, which merges from there.
"""

import dataclasses
from pathlib import Path

from io_harness.activities.checkout import CopyPaths, clear
from io_harness.activities.failure import failure
from io_harness.activities.git import Git
from io_harness.activities.ignored import in_thread
from io_harness.activities.locks import file_lock
from io_harness.activities.notes import from_note
from io_harness.activities.settings import Settings
from io_harness.activities.source import (
    directory_of,
    left_behind,
    repository_of,
    snapshot_directory,
)
from io_harness.activities.store import Conflict, SnapshotStore
from io_harness.workflows.contract import DirectorySource
from io_harness.workflows.payloads import LandInput
from io_harness.workflows.result import LandConflict, Landed

from .report import landed
from .write_back import Moved, Unwritable, Write, parse_writes, write_back

_MERGES = 5


async def land_in_directory(
    store: SnapshotStore, settings: Settings, given: LandInput, source: DirectorySource
) -> Landed | LandConflict:
    """Raises:
    ApplicationError: SourceNotFound, SourceUnreadable, LandingImpossible.
    """
    directory = directory_of(source)
    paths = CopyPaths.of(settings, given.run.key)
    async with file_lock(paths.lock) as lock:
        paths.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch = dataclasses.replace(
            paths.git(store, lock),
            work_tree=None,
            index=paths.directory / "index.landing",
            excludes=paths.directory / "excludes.landing",
        )
        moved = ""
        for _ in range(_MERGES):
            result = await _attempt(store, given, source, directory, scratch)
            if not isinstance(result, Moved):
                return result
            moved = str(result)
    return LandConflict(
        paths=(moved,),
        reason=f"something else is in its place in {directory}: a file that git ignores, or one that "
        "keeps changing",
    )


async def _attempt(
    store: SnapshotStore, given: LandInput, source: DirectorySource, directory: Path, scratch: Git
) -> Landed | LandConflict | Moved:
    assert scratch.index is not None
    scratch.index.unlink(missing_ok=True)  # it holds what an attempt before was to write
    now = await _tree_now(store, given.run.key, source, directory, scratch)
    planned = await store.ref(given.run.key, "landing")
    if planned is None:
        merged = await store.merge(given.base, now, given.head)
        if isinstance(merged, Conflict):
            return LandConflict(paths=merged.paths, reason=merged.reason)
        found = store.commit(now, [], "the source as landing found it")
        planned = store.commit(merged.tree, [found], f"landing of {given.head}")
        await store.set_ref(given.run.key, "landing", planned)
    merged = await store.merge(f"{planned}^", now, planned)
    if isinstance(merged, Conflict):
        return LandConflict(paths=merged.paths, reason=merged.reason)
    staged = scratch.index.with_name("landing")
    writes = await _stage(store, dataclasses.replace(scratch, work_tree=staged), now, merged.tree)
    try:
        await in_thread(lambda _: write_back(directory, staged, writes, given.run.key))
    except Moved as moved:
        return moved
    except Unwritable as error:
        raise failure(
            "LandingImpossible",
            f"landing: {error}; nothing was changed. Let the worker write there and land again, or "
            f"take the work from the snapshot {given.head}",
        ) from error
    mixed = merged.tree != await store.tree_of(given.head)
    return await landed(store, "apply", str(directory), f"{planned}^", planned, mixed=mixed)


async def _tree_now(
    store: SnapshotStore, run_key: str, source: DirectorySource, directory: Path, scratch: Git
) -> str:
    _, notes = await store.first(run_key)
    repository = await repository_of(directory)
    leave = left_behind(source, directory, store.path.parent)
    imported = await snapshot_directory(
        directory, repository, leave, from_note(notes.excludes), scratch
    )
    return imported.tree


async def _stage(store: SnapshotStore, git: Git, now: str, merged: str) -> list[Write]:
    """What differs; the files to be written are checked out into git's work tree."""
    printed = await store.git().out(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", now, merged, "--"
    )
    writes = parse_writes(printed)
    assert git.work_tree is not None
    clear(git.work_tree)
    await git.run("read-tree", merged)
    names = b"".join(write.path + b"\0" for write in writes if write.new is not None)
    await git.run("checkout-index", "-f", "-z", "--stdin", stdin=names)
    return writes
