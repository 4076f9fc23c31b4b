"""Ignore patterns of a source that are not in the tree itself."""

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from .git import Git

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


async def outer_patterns(repository: Git, source: Path) -> list[bytes]:
    """Patterns that a repository has for its folder `source`: from `info/exclude` and from the
    `.gitignore` files above `source`, rewritten as seen from there.

    Args:
        repository: git on it, its work tree named.
    """
    top = repository.work_tree
    assert top is not None
    rewritten: list[bytes] = []
    folder = top
    for file in (top / ".git" / "info" / "exclude", top / ".gitignore"):
        rewritten += _read(file, source.relative_to(top)) if file.parent != source else []
    for part in source.relative_to(top).parts[:-1]:
        folder = folder / part
        rewritten += _read(folder / ".gitignore", source.relative_to(folder))
    if source == top:
        return rewritten
    whole = await repository.run("check-ignore", "--no-index", "-q", "--", source, codes=(0, 1))
    return [b"/*"] if whole.code == 0 else rewritten


def _read(file: Path, prefix: Path) -> list[bytes]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return []  # most folders have none
    at = os.fsencode(prefix)
    return seen_from(b"" if at == b"." else at, lines)


def seen_from(prefix: bytes, lines: Iterable[bytes]) -> list[bytes]:
    """Patterns of an ignore file as they read from the folder `prefix` below it. Those that can't
    match anything in there are left out, also those that match the folder itself."""
    return [
        seen
        for line in lines
        if line.strip() and not line.startswith(b"#")
        for seen in _seen(prefix, line)
    ]


def _seen(prefix: bytes, line: bytes) -> list[bytes]:
    bang, pattern = (b"!", line[1:]) if line.startswith(b"!") else (b"", line)
    if not prefix or b"/" not in pattern.rstrip().rstrip(b"/"):
        return [line]
    rests = _rests(pattern.removeprefix(b"/").split(b"/"), prefix.split(b"/"))
    return [bang + b"/" + b"/".join(rest) for rest in rests if rest not in ([], [b""])]


def _rests(pattern: list[bytes], folders: list[bytes]) -> list[list[bytes]]:
    """What is left of a pattern's parts after these folders, in every way in which they match."""
    if not folders or not pattern:
        return [pattern] if not folders else []
    if pattern[0] == b"**":  # no folder, or one and perhaps more
        return _rests(pattern[1:], folders) + _rests(pattern, folders[1:])
    if fnmatch.fnmatchcase(folders[0], pattern[0]):
        return _rests(pattern[1:], folders[1:])
    return []
