"""Checks of a file's content, read from the snapshot itself."""

from typing import Literal

from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import FileContains, FileEquals
from io_harness.workflows.result import CheckReport

_REGULAR = ("100644", "100755")


async def check_file(
    check: FileContains | FileEquals, head: str, store: SnapshotStore
) -> CheckReport:
    """Compare a file of the snapshot `head`, byte for byte. A link is not followed."""
    found = await store.entry(head, check.path)
    if found is None:
        return _report(
            check,
            "failed",
            f"the result has no file {check.path} (ignored files are no part of it)",
        )
    mode, blob = found
    if mode not in _REGULAR:
        what = "a symbolic link" if mode == "120000" else "a directory"
        return _report(check, "failed", f"{check.path} is {what}, not a regular file")
    content, wanted = await store.get_blob(blob), check.text.encode()
    if isinstance(check, FileContains):
        if wanted in content:
            return _report(check, "passed", f"{check.path} contains the text")
        return _report(check, "failed", f"{check.path} does not contain the text")
    if content == wanted:
        return _report(check, "passed", f"{check.path} is as it must be")
    return _report(check, "failed", f"{check.path} differs {_where(content, wanted)}")


def _where(content: bytes, wanted: bytes) -> str:
    same = next(
        (at for at, (a, b) in enumerate(zip(content, wanted, strict=False)) if a != b),
        min(len(content), len(wanted)),
    )
    line = content[:same].count(b"\n") + 1
    return f"from line {line} on ({len(content)} bytes instead of {len(wanted)})"


def _report(
    check: FileContains | FileEquals, verdict: Literal["passed", "failed"], summary: str
) -> CheckReport:
    return CheckReport(kind=check.kind, verdict=verdict, summary=summary)
