"""Writes a commit and a ref into a git repository without starting git.

Both are part of every snapshot. The formats are those of gitformat-loose (zlib of a header, a NUL
byte and the content, under its SHA-1) and of gitrepository-layout (a file with the id and a newline).
"""

import hashlib
import os
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

_TRIES = 10
_NOT_IN_NAMES = str.maketrans("", "", "<>\n\0")


def identity(name: str, mail: str) -> str:
    """`Name <address>`, without what would end either of them early."""
    return f"{name.translate(_NOT_IN_NAMES).strip()} <{mail.translate(_NOT_IN_NAMES).strip()}>"


def write_commit(
    objects: Path,
    tree: str,
    parents: Sequence[str],
    message: str,
    author: str,
    committer: str,
    date: str,
) -> str:
    """Write a commit and return its id.

    Args:
        objects: The repository's object directory.
        author, committer: Name and address, as `Name <address>`.
        date: Seconds since 1970 and the offset, as `946684800 +0000`.
    """
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {author} {date}", f"committer {committer} {date}", "", message]
    content = "\n".join(lines).encode(errors="backslashreplace")
    raw = b"commit %d\0" % len(content) + content
    oid = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    target = objects / oid[:2] / oid[2:]
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        # git's collector removes what is left under this name.
        descriptor, partial = tempfile.mkstemp(prefix="tmp_obj_", dir=objects)
        with os.fdopen(descriptor, "wb") as file:
            file.write(zlib.compress(raw, 1))
        os.chmod(partial, 0o444)
        os.replace(partial, target)
    return oid


def write_ref(repository: Path, ref: str, target: str) -> None:
    """Point a ref at an object, whatever it pointed at before."""
    # Beside the objects, for what is left there under this name is collected.
    descriptor, partial = tempfile.mkstemp(prefix="tmp_ref_", dir=repository / "objects")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{target}\n")
    os.chmod(partial, 0o644)
    _moved(partial, repository / ref)


def _moved(partial: str, target: Path) -> None:
    for _ in range(_TRIES):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.replace(partial, target)
            return
        except FileNotFoundError:
            pass  # git removes a folder with the last ref in it
    os.replace(partial, target)
