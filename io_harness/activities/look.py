"""What a working copy's folders hold, without the content of files."""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from .stamps import Stamp, stamp_of

_MOST_ENTRIES = 2000


class TooMany(Exception):
    """Looking at so many files takes longer than git does."""


class NamesDiffer(Exception):
    """Something is new, or a folder is gone."""


@dataclass(frozen=True)
class Listing:
    """A folder's entries. A stamp that is None says: to be read again."""

    stamp: Stamp | None
    files: Mapping[bytes, Stamp | None]
    """All but folders."""
    folders: frozenset[bytes]


Look = Mapping[bytes, Listing]
"""By path from the top, which is empty."""


def look(root: bytes, leave: Collection[bytes], before: Look | None = None) -> Look:
    """List the folders below `root` but those of git and the paths `leave`.

    Args:
        before: An earlier look. Folders that didn't change since are not listed again.

    Raises:
        TooMany: there is more than a look is good for.
        OSError: something vanished meanwhile, or can't be read.
    """
    now = time.time_ns()
    found: dict[bytes, Listing] = {}
    pending, entries = [b""], 0
    while pending:
        at = pending.pop()
        folder = os.path.join(root, at)
        stamp = stamp_of(os.lstat(folder), now)
        known = before.get(at) if before else None
        if known is None or stamp is None or stamp != known.stamp:
            names, folders = _listed(folder)
        else:
            names, folders = known.files.keys(), known.folders
        files = {name: stamp_of(os.lstat(os.path.join(folder, name)), now) for name in names}
        found[at] = Listing(stamp, files, folders)
        entries += len(files) + len(folders)
        if entries > _MOST_ENTRIES:
            raise TooMany
        below = (os.path.join(at, name) for name in folders if name != b".git")
        pending += [path for path in below if path not in leave]
    return found


def _listed(folder: bytes) -> tuple[Collection[bytes], frozenset[bytes]]:
    files: list[bytes] = []
    folders: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    return files, frozenset(folders)


def suspects(before: Look, after: Look) -> Iterator[tuple[bytes, bool]]:
    """Files that may have changed, and whether they are gone.

    Raises:
        NamesDiffer: there is more to it than that.
    """
    if before.keys() != after.keys():
        raise NamesDiffer
    for at, now in after.items():
        was = before[at]
        if now.folders != was.folders or now.files.keys() - was.files.keys():
            raise NamesDiffer
        for name, stamp in was.files.items():
            if stamp is None or now.files.get(name) != stamp:
                yield os.path.join(at, name), name not in now.files
