"""Lands as a patch file."""

import asyncio
from pathlib import Path

from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import Patch
from io_harness.workflows.payloads import LandInput
from io_harness.workflows.result import LandConflict, Landed

from .report import landed


async def land_as_patch(
    store: SnapshotStore, given: LandInput, landing: Patch
) -> Landed | LandConflict:
    """Write the change as `git apply` reads it. A file of other content that is there stays."""
    patch = await store.patch(given.base, given.head)
    path = Path(landing.path)
    if path.exists():
        if await asyncio.to_thread(path.read_bytes) != patch:
            return LandConflict(
                paths=(str(path),),
                reason=f"{path} exists and holds something else; move it away, or name another file",
            )
    else:
        await asyncio.to_thread(_write, path, patch)
    return await landed(store, "patch", str(path), given.base, given.head)


def _write(path: Path, patch: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(patch)
    partial.replace(path)
