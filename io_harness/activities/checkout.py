"""Puts a snapshot's files on disk: afresh, or by setting back a copy that was changed."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from .git import Git, GitError
from .locks import FileLock
from .notes import SourceNotes, from_note
from .settings import Settings
from .store import SnapshotStore
from .trees import folder_beneath, remove_tree

_DIRTY = "dirty".ljust(40, "-")
"""As long as a commit's id."""


@dataclass(frozen=True)
class CopyPaths:
    """Where the parts of one run's working copy are. Only `root` is the agent's."""

    run_key: str
    directory: Path

    @staticmethod
    def of(settings: Settings, run_key: str) -> "CopyPaths":
        return CopyPaths(run_key, settings.data_dir / "runs" / run_key)

    @property
    def root(self) -> Path:
        return self.directory / "copy"

    @property
    def index(self) -> Path:
        return self.directory / "index"

    @property
    def excludes(self) -> Path:
        return self.directory / "excludes"

    @property
    def lock(self) -> Path:
        return self.directory.with_name(self.directory.name + ".lock")

    @property
    def _state(self) -> Path:
        return self.directory / "state"

    def git(self, store: SnapshotStore, lock: FileLock) -> Git:
        return store.git(
            work_tree=self.root,
            index=self.index,
            excludes=self.excludes,
            held=(lock.descriptor,),
        )

    def clean_at(self, commit: str) -> bool:
        """Whether the copy is known to be exactly at a snapshot."""
        return self._read_state() == [commit, _boot()]

    def survived(self) -> bool:
        """Whether no power failure can have lost writes since the copy's state was noted."""
        return self._read_state()[-1:] == [_boot()]

    def mark_clean(self, commit: str) -> None:
        self._mark(commit)

    def mark_dirty(self) -> None:
        if not self.clean_at(_DIRTY):
            self._mark(_DIRTY)

    def _mark(self, state: str) -> None:
        # In one write, of always the same length: who is killed leaves the old state or the new one,
        # and after a power failure neither counts. Replacing the file would cost a flush to disk.
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._state, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, f"{state} {_boot()}".encode())
        finally:
            os.close(descriptor)

    def _read_state(self) -> list[str]:
        try:
            return self._state.read_text().split()
        except FileNotFoundError:
            return []


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"  # not Linux: a power failure goes unnoticed


async def check_out(git: Git, commit: str, notes: SourceNotes) -> None:
    """Fill git's empty or changed work tree with a snapshot's files, and drop what git doesn't
    ignore besides.

    Raises:
        GitError: something is in the way that git can't remove.
    """
    assert git.work_tree is not None
    assert git.index is not None
    assert git.excludes is not None
    git.excludes.write_bytes(from_note(notes.excludes))
    # Whoever holds the lock of the copy knows that this one is a dead process's.
    git.index.with_name(git.index.name + ".lock").unlink(missing_ok=True)
    await git.run("read-tree", "--reset", "-u", commit)
    await git.run("clean", "-ffdq")
    root = os.fsencode(git.work_tree)
    for name in notes.empty:
        folder_beneath(root, from_note(name))


async def restore(git: Git, commit: str, notes: SourceNotes, *, trust_index: bool) -> bool:
    """Set a changed copy back to a snapshot. Ignored files stay.

    Args:
        trust_index: Whether what the index remembers of files' times can be relied upon.

    Returns:
        False if the copy is beyond that and must be made afresh.
    """
    assert git.work_tree is not None
    assert git.index is not None
    if not git.work_tree.is_dir() or git.work_tree.is_symlink():
        return False
    if not trust_index:
        git.index.unlink(missing_ok=True)
    try:
        await check_out(git, commit, notes)
    except GitError as error:
        if error.disk_full or error.denied:
            raise
        return False
    return True


def clear(root: Path) -> None:
    """An empty folder at `root`, whatever was there."""
    if root.is_symlink() or root.is_file():
        root.unlink()
    remove_tree(root)
    root.mkdir(parents=True, mode=0o755)
