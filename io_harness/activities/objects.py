"""Reads and writes git objects within this process, by libgit2. A snapshot follows each tool call, and
starting git for it costs more than the snapshot.

libgit2 is given an object directory and nothing else: no repository, work tree or configuration, so
there is no hook, filter, attribute or driver that it could follow. It takes 0.2 s to load: import
this module where it is used.
"""

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from io_harness.workflows.result import FileChange

from .changes import Status, shown

_MOST_CHANGES = 1000
_LARGEST_BLOB = 512 * 1024
_OID_BYTES = 20


@dataclass(frozen=True)
class Entry:
    """What a tree has under one name."""

    mode: int
    oid: str

    @property
    def is_tree(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Objects:
    """The objects of one repository."""

    def __init__(self, directory: Path) -> None:
        self._odb = pygit2.Odb(str(directory))

    def tree(self, oid: str) -> dict[bytes, Entry]:
        """Raises:
        KeyError: there is no such tree.
        """
        kind, raw = self._odb.read(oid)
        if kind != ObjectType.TREE:
            raise KeyError(oid)
        return dict(_entries(raw))

    def write_blob(self, content: bytes, known: Entry | None) -> str:
        """Have a file's content and return its id.

        Args:
            known: What is there already.
        """
        oid = str(pygit2.hash(content))
        if known is None or known.oid != oid:
            self._odb.write(ObjectType.BLOB, content)
        return oid

    def entry(self, tree: str, path: bytes) -> Entry | None:
        """What a tree has at a path, or None."""
        found: Entry | None = Entry(stat.S_IFDIR, tree)
        for name in path.split(b"/") if path else ():
            found = self._below(found).get(name)
        return found

    def replaced(self, tree: str, entries: Mapping[bytes, Entry | None]) -> str:
        """Write the tree that has these entries in the place of those of `tree`, and return it. What
        is None is left out, and so is a folder without anything."""
        by_folder: dict[bytes, dict[bytes, Entry | None]] = {b"": {}}
        for path, entry in entries.items():
            folder, _, name = path.rpartition(b"/")
            by_folder.setdefault(folder, {})[name] = entry
        while True:
            folder = max(by_folder, key=lambda path: (path.count(b"/"), path))  # the deepest
            held = self._below(self.entry(tree, folder))
            merged = {**held, **by_folder.pop(folder)}
            left = {name: entry for name, entry in merged.items() if entry is not None}
            oid = str(self._odb.write(ObjectType.TREE, _serialized(left)))
            if not folder:
                return oid
            parent, _, name = folder.rpartition(b"/")
            inner = Entry(stat.S_IFDIR, oid) if left else None
            by_folder.setdefault(parent, {})[name] = inner

    def changes(self, old: str, new: str) -> tuple[FileChange, ...] | None:
        """What differs between two trees, by path, with git's own counts of lines.

        Returns:
            None where it takes a process of its own, for so many or so large files.

        Raises:
            KeyError: there is no such tree.
        """
        found: dict[bytes, FileChange] = {}
        for path, was, now in self._differing(old, new):
            lines = self._lines(was, now)
            if lines is None or len(found) == _MOST_CHANGES:
                return None
            status: Status = "added" if was is None else "deleted" if now is None else "modified"
            found[path] = FileChange(
                path=shown(path), status=status, added=lines[0], removed=lines[1]
            )
        return tuple(found[path] for path in sorted(found))

    def _differing(self, old: str, new: str) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
        """Files that differ. What is a folder on one side is no file there."""
        pending = [(b"", self.tree(old), self.tree(new))]
        while pending:
            folder, before, after = pending.pop()
            for name in before.keys() | after.keys():
                was, now = before.get(name), after.get(name)
                if was == now:
                    continue
                if (was and was.is_tree) or (now and now.is_tree):
                    pending.append((folder + name + b"/", self._below(was), self._below(now)))
                files = [entry if entry and not entry.is_tree else None for entry in (was, now)]
                if any(files):
                    yield folder + name, files[0], files[1]

    def _below(self, entry: Entry | None) -> dict[bytes, Entry]:
        return self.tree(entry.oid) if entry and entry.is_tree else {}

    def _lines(self, was: Entry | None, now: Entry | None) -> tuple[int, int] | None:
        if was and now and was.oid == now.oid:
            return 0, 0
        before, after = self._content(was), self._content(now)
        if before is None or after is None:
            return None
        _, added, removed = pygit2.Patch.create_from(before, after, context_lines=0).line_stats
        return added, removed

    def _content(self, entry: Entry | None) -> bytes | None:
        if entry is None:
            return b""
        if self._odb.read_header(entry.oid)[1] > _LARGEST_BLOB:
            return None
        return self._odb.read(entry.oid)[1]


def _entries(raw: bytes) -> Iterator[tuple[bytes, Entry]]:
    at = 0
    while at < len(raw):
        space, end = raw.index(b" ", at), raw.index(b"\0", at)
        oid = raw[end + 1 : end + 1 + _OID_BYTES]
        yield raw[space + 1 : end], Entry(int(raw[at:space], 8), oid.hex())
        at = end + 1 + _OID_BYTES


def _serialized(entries: Mapping[bytes, Entry]) -> bytes:
    """In git's order: a folder's name counts as if it ended in a slash."""
    ordered = sorted(entries.items(), key=lambda each: each[0] + b"/" * each[1].is_tree)
    return b"".join(
        b"%o %s\0" % (entry.mode, name) + bytes.fromhex(entry.oid) for name, entry in ordered
    )
