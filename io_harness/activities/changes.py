"""Reads what `git diff-tree -z --raw --numstat` prints."""

import os
from typing import Literal

from io_harness.workflows.result import FileChange

SHOWN_CHANGES = 200
"""Ceiling of the changes that an activity reports one by one."""

Status = Literal["added", "modified", "deleted"]
_STATUS: dict[str, Status] = {"A": "added", "D": "deleted", "M": "modified", "T": "modified"}


def parse_changes(printed: bytes) -> tuple[FileChange, ...]:
    """Changes by path. Names that are not UTF-8 are shown with backslash escapes."""
    status: dict[bytes, Status] = {}
    lines: dict[bytes, tuple[int, int]] = {}
    fields = iter(printed.split(b"\0"))
    for field in fields:
        if field.startswith(b":"):
            status[next(fields)] = _STATUS[field.split(b" ")[4].decode()]
        elif field:
            added, removed, path = field.split(b"\t", 2)
            lines[path] = (_count(added), _count(removed))
    return tuple(
        FileChange(path=shown(path), status=what, added=lines[path][0], removed=lines[path][1])
        for path, what in sorted(status.items())
    )


def shown(path: bytes | str) -> str:
    """A file name as text that any JSON can carry."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _count(field: bytes) -> int:
    return 0 if field == b"-" else int(field)  # "-": a binary file
