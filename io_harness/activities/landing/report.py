"""What a landing reports."""

from typing import Literal

from io_harness.activities.changes import SHOWN_CHANGES
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.result import Landed

SHOWN_DIFF_BYTES = 32 * 1024
"""Ceiling of the diff in a report and of what a human is shown."""


async def landed(
    store: SnapshotStore,
    mode: Literal["apply", "branch", "patch"],
    where: str,
    old: str,
    new: str,
    *,
    mixed: bool = False,
) -> Landed:
    """The report of a landing that turned the tree `old` into `new` at `where`."""
    changes = await store.changes(old, new)
    diff, omitted = await store.diff(old, new, SHOWN_DIFF_BYTES)
    return Landed(
        mode=mode,
        where=where,
        files=changes[:SHOWN_CHANGES],
        files_omitted=len(changes[SHOWN_CHANGES:]),
        diff=diff,
        diff_omitted_bytes=omitted,
        mixed=mixed,
    )
