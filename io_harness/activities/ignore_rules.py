"""Ignore patterns of a source that are not in the tree itself."""

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

DERIVED = (
    "__pycache__/",
    "*.py[cod]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".venv/",
    "node_modules/",
    ".coverage",
    ".DS_Store",
)
"""What tools leave behind. Not part of the work even where no `.gitignore` says so; files of these
names that the source's own repository tracks are."""

TEMPORARY = ".io-harness-*.tmp"
"""Names under which landing writes a file before it moves it into place."""


def anchored(path: bytes) -> bytes:
    """The pattern that matches exactly this path, from the top."""
    special = b"\\*?[ \t"
    escaped = b"".join(b"\\" + bytes([byte]) if byte in special else bytes([byte]) for byte in path)
    return b"/" + escaped


def outer_patterns(top: Path, source: Path) -> list[bytes]:
    """Patterns that the repository at `top` has for its folder `source`: from `info/exclude` and
    from the `.gitignore` files above `source`, rewritten as seen from there."""
    folders = [top]
    for part in source.relative_to(top).parts[:-1]:
        folders.append(folders[-1] / part)
    above = [] if source == top else folders
    files = [(top, top / ".git" / "info" / "exclude")]
    files += [(folder, folder / ".gitignore") for folder in above]
    rewritten: list[bytes] = []
    for folder, file in files:
        try:
            lines = file.read_bytes().splitlines()
        except OSError:
            continue  # most folders have none
        prefix = os.fsencode(source.relative_to(folder))
        rewritten += seen_from(b"" if prefix == b"." else prefix, lines)
    return rewritten


def seen_from(prefix: bytes, lines: Iterable[bytes]) -> list[bytes]:
    """Patterns of an ignore file as they read from the folder `prefix` below it. Those that can't
    match anything there are left out."""
    return [
        seen
        for line in lines
        if line.strip() and not line.startswith(b"#")
        if (seen := _seen(prefix, line)) is not None
    ]


def _seen(prefix: bytes, line: bytes) -> bytes | None:
    bang, pattern = (b"!", line[1:]) if line.startswith(b"!") else (b"", line)
    if not prefix or b"/" not in pattern.rstrip().rstrip(b"/"):
        return bang + pattern
    parts = pattern.lstrip(b"/").split(b"/")
    for folder in prefix.split(b"/"):
        if parts[0] == b"**":
            return bang + b"/".join(parts)
        if not fnmatch.fnmatchcase(folder, parts[0]):
            return None
        parts = parts[1:]
        if parts in ([], [b""]):
            return bang + b"/*"  # a folder above is ignored, and all in it
    return bang + b"/" + b"/".join(parts)
