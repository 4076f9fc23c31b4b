"""Finds what of a workspace the policy withholds from commands."""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from io_harness.workflows.policy import Policy

from .stamps import Stamp, stamp_of

_WORKSPACES = 32


@dataclass(frozen=True)
class _Folder:
    stamp: Stamp | None
    """None: it is to be read again."""
    hidden: tuple[str, ...]
    """Paths in it."""
    folders: tuple[str, ...]
    """Paths of those below it that aren't hidden."""


_Folders = Mapping[str, _Folder]


class WithheldFiles:
    """Remembers what it found, so that only folders that changed are read again."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[Policy, _Folders]] = OrderedDict()

    def find(self, root: Path, policy: Policy) -> tuple[Path, ...]:
        """Files and folders below `root` whose reading is denied: the topmost ones.

        Raises:
            OSError: a folder can't be read.
        """
        decided, before = self._known.pop(root, (policy, {}))
        folders = _search(root, policy.hidden_paths(), before if decided == policy else {})
        self._known[root] = policy, folders
        while len(self._known) > _WORKSPACES:
            self._known.popitem(last=False)
        return tuple(sorted(root / path for each in folders.values() for path in each.hidden))


def _search(root: Path, hidden: Callable[[str], bool], before: _Folders) -> _Folders:
    now = time.time_ns()
    found: dict[str, _Folder] = {}
    pending = [""]
    while pending:
        at = pending.pop()
        # The status first: what comes into the folder after it shows the next time.
        stamp = stamp_of(os.lstat(os.path.join(root, at)), now)
        folder = before.get(at)
        if folder is None or stamp is None or folder.stamp != stamp:
            folder = _listed(root, at, stamp, hidden)
        found[at] = folder
        pending += folder.folders
    return found


def _listed(root: Path, at: str, stamp: Stamp | None, hidden: Callable[[str], bool]) -> _Folder:
    withheld: list[str] = []
    folders: list[str] = []
    with os.scandir(os.path.join(root, at)) as entries:
        for entry in entries:
            path = os.path.join(at, entry.name)
            if hidden(path):
                withheld.append(path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
    return _Folder(stamp, tuple(withheld), tuple(folders))
