"""Ends a run on this host: nothing of it keeps running, its copy goes, its work stays on a ref."""

import os
import signal
from pathlib import Path

from io_harness.workflows.payloads import Released, ReleaseInput

from .checkout import CopyPaths
from .ignored import in_thread
from .locks import file_lock
from .settings import Settings
from .store import SnapshotStore
from .trees import remove_tree


async def release(given: ReleaseInput, settings: Settings, store: SnapshotStore) -> Released:
    """Raises:
    UnknownSnapshot: the store has no snapshot `given.head`.
    """
    paths = CopyPaths.of(settings, given.run.key)
    await store.ready()
    await store.tree_of(given.head)
    ref = await store.set_ref(given.run.key, "final", given.head)
    async with file_lock(paths.lock):
        end_processes_in(paths.directory)
        await in_thread(lambda _: remove_tree(paths.directory))
        paths.lock.unlink(missing_ok=True)  # who waits for it makes a new one
    return Released(ref=ref)


def end_processes_in(directory: Path) -> None:
    """Kill this user's processes whose current directory is in `directory`: those that escaped from
    a command's process group. Linux only; a sandbox with a process namespace leaves none."""
    own, beneath = str(os.getpid()), f"{directory}/"
    for process in os.listdir("/proc"):
        if not process.isdigit() or process == own:
            continue
        try:  # as text: a busy host has hundreds
            inside = f"{os.readlink(f'/proc/{process}/cwd')}/".startswith(beneath)
        except OSError:
            continue  # ended meanwhile, or another user's
        if inside:
            os.kill(int(process), signal.SIGKILL)
