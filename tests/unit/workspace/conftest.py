"""A store, a source and a run for tests of the workspace."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.locks import file_lock
from io_harness.activities.prepare import make_copy
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import TaskContract

RUN = "run"
IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


def git(where: Path, *args: str) -> str:
    """Plain git, as a user runs it."""
    done = subprocess.run(
        ["git", *IDENTITY, *args], cwd=where, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def contract_for(source: Path | str, **fields: Any) -> TaskContract:
    """A contract on a directory, or on a git URL; `workspace` adds to what the source says."""
    where = (
        {"kind": "directory", "path": str(source)}
        if isinstance(source, Path)
        else {"kind": "git", "url": source}
    )
    workspace = where | fields.pop("workspace", {})
    return TaskContract.model_validate(
        {
            "goal": "mend it",
            "workspace": workspace,
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "none", "base_url": "/nonexistent"},
            **fields,
        }
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
async def store(settings: Settings) -> SnapshotStore:
    made = SnapshotStore(settings.data_dir)
    await made.ready()
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small git repository with one commit."""
    folder = tmp_path / "source"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "app.py").write_text("one\ntwo\nthree\nfour\nfive\n")
    (folder / "README.md").write_text("read me\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


async def begin(store: SnapshotStore, settings: Settings, contract: TaskContract) -> str:
    """Import the source and make the copy of the run `run`; the first snapshot."""
    paths = CopyPaths.of(settings, RUN)
    async with file_lock(paths.lock) as lock:
        return await make_copy(store, paths, contract, lock)
