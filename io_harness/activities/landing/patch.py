"""Lands as a patch file."""

import asyncio
import errno
import os
import secrets
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
    if not await asyncio.to_thread(_written, path, patch):
        return LandConflict(
            paths=(str(path),),
            reason=f"{path} exists and holds something else; move it away, or name another file",
        )
    return await landed(store, "patch", str(path), given.base, given.head)


def _written(path: Path, patch: bytes) -> bool:
    """Whether the file holds the patch now. One that is there is never replaced or written through."""
    partial = path.with_name(f".io-harness-{secrets.token_hex(8)}.patch")
    try:
        with partial.open("xb") as file:
            file.write(patch)
        _put(partial, path)
    except FileExistsError:
        return path.is_file() and path.read_bytes() == patch
    finally:
        partial.unlink(missing_ok=True)
    return True


def _put(partial: Path, path: Path) -> None:
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        partial.rename(path)  # a file system without hard links
