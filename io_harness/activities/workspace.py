"""A run's working copy: a private directory that is put exactly at a snapshot before each call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import FileChange

from .changes import SHOWN_CHANGES
from .checkout import CopyPaths, restore
from .failure import failure
from .fresh import fresh_copy
from .locks import FileLock, file_lock
from .network import OpenNetwork, nowhere
from .settings import Settings
from .store import SnapshotStore

Access = Literal["read", "write"]


@dataclass(frozen=True)
class WorkingCopy:
    """The run's files, at the snapshot `base`, until something changes them."""

    root: Path
    """Where the files are. Everything in it is the agent's and is not to be trusted."""
    base: str
    _store: SnapshotStore
    _paths: CopyPaths
    _access: Access
    _lock: FileLock

    def begin_change(self) -> None:
        """Call before anything that may write to the copy. Until `snapshot` returns, a crash or an
        error makes the next `open_copy` restore the copy.

        Raises:
            RuntimeError: the copy was opened for reading.
        """
        if self._access == "read":
            raise RuntimeError("the working copy was opened for reading; open it for writing")
        self._paths.mark_dirty()

    async def snapshot(
        self,
        message: str,
        *,
        even_unchanged: bool = False,
        author: tuple[str, str] | None = None,
    ) -> tuple[str, tuple[FileChange, ...]]:
        """Commit what is in the copy now, ignored files excepted, on top of `base`.

        Args:
            even_unchanged: Make a commit of its own though nothing changed.
            author: Name and mail address instead of the harness's own.

        Returns:
            The new snapshot (`base` itself if nothing changed) and the first `SHOWN_CHANGES`
            changes, by path. The same content with the same message gives the same snapshot.
        """
        self.begin_change()
        git = self._paths.git(self._store, self._lock)
        base = await self._store.tree_of(self.base)
        tree = await self._store.seen.tree(git, base)
        if tree == base and not even_unchanged:
            self._paths.mark_clean(self.base)
            return self.base, ()
        head = self._store.commit(tree, [self.base], message, author=author)
        _, changes = await asyncio.gather(
            self._store.set_ref(self._paths.run_key, "head", head),
            self._store.changes(self.base, head),
        )
        self._paths.mark_clean(head)
        return head, changes[:SHOWN_CHANGES]


@asynccontextmanager
async def open_copy(
    store: SnapshotStore,
    settings: Settings,
    run_key: str,
    contract: TaskContract,
    base: str,
    *,
    access: Access = "write",
    network: OpenNetwork = nowhere,
) -> AsyncIterator[WorkingCopy]:
    """Hold the run's copy, exactly at `base`, for the body.

    Readers share the copy; a writer has it alone, so that two attempts never interleave. It costs
    a millisecond or two where the copy is known to be at `base`, and a restore or a new checkout
    where it isn't. Ignored files stay as they are on a restore.

    Args:
        network: For the set-up, where the copy must be made again.

    Raises:
        UnknownSnapshot: the store has no snapshot `base`.
        ApplicationError: a missing copy could not be made again.
    """
    paths = CopyPaths.of(settings, run_key)
    await store.ready()
    while True:
        if access == "read":
            async with file_lock(paths.lock, shared=True) as lock:
                if paths.clean_at(base):
                    yield WorkingCopy(paths.root, base, store, paths, access, lock)
                    return
        async with file_lock(paths.lock) as lock:
            if not paths.clean_at(base):
                await _bring_to(base, store, paths, contract, lock, network)
            if access == "write":
                yield WorkingCopy(paths.root, base, store, paths, access, lock)
                return


async def _bring_to(
    base: str,
    store: SnapshotStore,
    paths: CopyPaths,
    contract: TaskContract,
    lock: FileLock,
    network: OpenNetwork,
) -> None:
    await store.tree_of(base)  # first of all: is there such a snapshot?
    trust_index = paths.survived()
    first, notes = await store.first(paths.run_key)
    paths.mark_dirty()
    git = paths.git(store, lock)
    if not await restore(git, base, notes, trust_index=trust_index):
        await fresh_copy(git, base, first, notes, contract, network)
        if not await restore(git, base, notes, trust_index=True):  # what the set-up changed
            raise failure("SetupFailed", "workspace.setup left the copy so that git can't read it")
    paths.mark_clean(base)
