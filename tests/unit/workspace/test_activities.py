"""The activities as Temporal runs them: heartbeats, cancellation, codes of errors."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.failure import told
from io_harness.activities.git import Git, GitError, GitUnusable
from io_harness.activities.heartbeat import heartbeating
from io_harness.activities.locks import file_lock
from io_harness.activities.prepare import repo_name
from io_harness.activities.release import release
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore, UnknownSnapshot
from io_harness.activities.workspace import open_copy
from io_harness.sandbox import SandboxError
from io_harness.workflows.payloads import ReleaseInput, RunScope
from io_harness.workflows.result import Outcome

from .conftest import RUN, begin, contract_for


@activity.defn
async def slow(seconds: float) -> str:
    async with heartbeating():
        await asyncio.sleep(seconds)
    return "done"


async def test_an_activity_beats_after_each_second_and_a_short_one_never() -> None:
    beats: list[Any] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    assert await environment.run(slow, 0) == "done"
    assert not beats
    assert await environment.run(slow, 1.2) == "done"
    assert len(beats) == 1


async def test_a_cancellation_goes_through() -> None:
    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(slow, 60))
    await asyncio.sleep(0.05)
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "DiskFull", False),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "DiskFull", False),
        (GitError("add", 128, "fatal: write: No space left on device"), "DiskFull", False),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "AccessDenied", False),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "AccessDenied", False),
        (GitError("add", 128, "error: /x/o: Read-only file system"), "AccessDenied", False),
        (GitUnusable("git is missing"), "GitUnusable", False),
        (UnknownSnapshot("abc", Path("/store")), "UnknownSnapshot", False),
        (SandboxError("no backend"), "SandboxUnusable", False),
        (OSError(errno.EIO, "Input/output error"), "WorkspaceFailure", True),
        (GitError("add", 128, "fatal: index file corrupt"), "WorkspaceFailure", True),
    ],
)
def test_each_failure_has_a_code_and_says_whether_to_retry(
    error: Exception, code: str, retry: bool
) -> None:
    with pytest.raises(ApplicationError) as caught, told():
        raise error
    assert (caught.value.type, caught.value.non_retryable) == (code, not retry)
    assert str(error) in caught.value.message


async def test_a_full_disk_is_told_apart(tmp_path: Path) -> None:
    """git's own words, where what it writes to is full."""
    with pytest.raises(GitError) as caught:
        await Git(tmp_path).run("-c", "alias.fill=!git version > /dev/full", "fill")
    assert caught.value.disk_full


async def test_git_is_killed_with_its_task(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    alias = f"alias.wait=!echo $$ > {marker}; exec sleep 60"
    task = asyncio.create_task(Git(tmp_path).run("-c", alias, "wait"))
    async with asyncio.timeout(10):
        while not marker.exists() or not marker.read_text().strip():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)


@pytest.mark.parametrize("turns", range(1, 8))
async def test_git_is_killed_while_it_starts(tmp_path: Path, turns: int) -> None:
    """Cancelled after so many turns of the event loop."""
    alias = "alias.wait=!sleep 60; true"
    task = asyncio.create_task(Git(tmp_path).run("-c", alias, "wait"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)


async def test_a_killed_workers_git_keeps_the_lock(tmp_path: Path) -> None:
    """Git that still writes when its worker is gone must be waited for."""
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from io_harness.activities.locks import file_lock\n"
        "from io_harness.activities.git import Git\n"
        "async def main():\n"
        "    async with file_lock(Path(sys.argv[1])) as lock:\n"
        "        print('locked', flush=True)\n"
        "        git = Git(Path('/'), held=(lock.descriptor,))\n"
        "        await git.run('-c', 'alias.wait=!exec sleep 1.5', 'wait')\n"
        "asyncio.run(main())\n"
    )
    lock = tmp_path / "lock"
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(lock), stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"locked\n"
    await asyncio.sleep(0.5)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3), file_lock(lock):
            pass
    async with asyncio.timeout(10), file_lock(lock):
        pass


async def test_release_keeps_the_work_and_removes_the_copy(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("mended\n")
        head, _ = await copy.snapshot("mend")
    left_behind = await sleeper(copy.root)
    elsewhere = await sleeper(Path("/"))
    scope = RunScope(key=RUN, contract_digest="")
    given = ReleaseInput(run=scope, base=base, head=head, outcome=Outcome.SUCCESS)
    released = await release(given, settings, store)
    assert released.ref == f"refs/io-harness/{RUN}/final"
    assert await store.git().line("rev-parse", released.ref) == head
    assert not CopyPaths.of(settings, RUN).directory.exists()
    assert await asyncio.wait_for(left_behind.wait(), 5) == -signal.SIGKILL
    assert elsewhere.returncode is None
    elsewhere.kill()
    await elsewhere.wait()
    assert await release(given, settings, store) == released


async def sleeper(folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec("sleep", "60", cwd=folder, start_new_session=True)


async def test_release_waits_for_nobody_who_is_gone(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    scope = RunScope(key=RUN, contract_digest="")
    given = ReleaseInput(run=scope, base=base, head=base, outcome=Outcome.CANCELLED)
    async with asyncio.timeout(30):
        await asyncio.gather(*(release(given, settings, store) for _ in range(3)))
    assert not CopyPaths.of(settings, RUN).directory.exists()


async def test_many_may_make_the_store_at_once(tmp_path: Path) -> None:
    stores = [SnapshotStore(tmp_path / "data") for _ in range(8)]
    await asyncio.gather(*(made.ready() for made in stores))
    blob = await stores[0].put_blob(b"\0bytes\r\n")
    assert await stores[7].get_blob(blob) == b"\0bytes\r\n"
    assert os.listdir(tmp_path / "data" / "snapshots.git" / "info") == ["attributes"]


def test_a_source_has_a_short_name(tmp_path: Path) -> None:
    for url, name in [
        ("https://example.org/owner/repo.git", "owner/repo"),
        ("git@example.org:owner/repo.git", "owner/repo"),
        ("/srv/git/repo.git", "git/repo"),
    ]:
        contract = contract_for(url, landing={"mode": "branch"})
        assert repo_name(contract.workspace) == name
    assert repo_name(contract_for(tmp_path / "project").workspace) == "project"
