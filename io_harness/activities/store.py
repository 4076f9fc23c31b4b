"""The snapshot store: a bare git repository of the harness's own, one per worker host.

Every snapshot is a commit. The user's `.git` is never involved.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from io_harness.workflows.result import FileChange

from .changes import parse_changes, shown
from .git import EPOCH, IDENTITY, Git, check_version
from .locks import file_lock
from .loose import identity, write_commit, write_ref
from .notes import SourceNotes
from .seen import SeenCopies

if TYPE_CHECKING:
    from .objects import Objects

REFS = "refs/io-harness"
_REMEMBERED = 4096

# Bytes are kept exactly: no conversion, filter, keyword or encoding that a tree's own .gitattributes
# asks for, and no diff or merge driver. info/attributes wins over every .gitattributes.
_ATTRIBUTES = (
    "* -text -filter -ident -working-tree-encoding !eol !crlf"
    " !diff !merge !whitespace !conflict-marker-size\n"
)


class UnknownSnapshot(Exception):
    """The store has no such commit."""

    def __init__(self, commit: str, store: Path) -> None:
        super().__init__(f"snapshot {commit} is not in the store {store}")


@dataclass(frozen=True)
class Merged:
    tree: str


@dataclass(frozen=True)
class Conflict:
    paths: tuple[str, ...]
    reason: str


class SnapshotStore:
    """Commits, refs and comparisons. Safe for use by several processes at once."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "snapshots.git"
        self._ready = False
        self._trees: dict[str, str] = {}
        self.seen = SeenCopies()

    async def ready(self) -> None:
        """Create the repository if it isn't there yet.

        Raises:
            GitUnusable: git is missing or too old.
            OSError: the data directory can't be written.
        """
        if self._ready:
            return
        await asyncio.to_thread(check_version)
        async with file_lock(self.path.with_suffix(".lock")):
            attributes = self.path / "info" / "attributes"
            if not attributes.exists() or attributes.read_text() != _ATTRIBUTES:
                await self.git().run(
                    "-c", "init.defaultRefFormat=files",
                    "init", "--quiet", "--bare", "--template=", "--object-format=sha1", self.path,
                )  # fmt: skip
                attributes.parent.mkdir(exist_ok=True)
                partial = attributes.with_suffix(".new")
                partial.write_text(_ATTRIBUTES)
                partial.replace(attributes)
        self._ready = True

    def git(
        self,
        *,
        work_tree: Path | None = None,
        index: Path | None = None,
        excludes: Path | None = None,
        held: tuple[int, ...] = (),
        alternates: Path | None = None,
    ) -> Git:
        """git on this store.

        Args:
            alternates: An object directory that is read as well, never written.
        """
        env = (("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(alternates)),) if alternates else ()
        return Git(self.path, work_tree, index, excludes, env=env, held=held)

    # --- commits and refs -------------------------------------------------------------------------

    def commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        *,
        author: tuple[str, str] | None = None,
    ) -> str:
        """A commit of `tree`. The same arguments give the same commit.

        Args:
            author: Name and mail address, if not the harness's own.
        """
        by = IDENTITY if author is None else identity(*author)
        objects = self.path / "objects"
        commit = write_commit(objects, tree, parents, message, by, IDENTITY, EPOCH)
        self._remember(commit, tree)
        return commit

    async def tree_of(self, commit: str) -> str:
        """Raises:
        UnknownSnapshot: there is no such commit.
        """
        known = self._trees.get(commit)
        if known is not None:
            return known
        found = await self.git().run(
            "rev-parse", "--quiet", "--verify", "--end-of-options", f"{commit}^{{tree}}",
            codes=(0, 1, 128),
        )  # fmt: skip
        if found.code:
            raise UnknownSnapshot(commit, self.path)
        tree = found.stdout.decode().strip()
        self._remember(commit, tree)
        return tree

    def _remember(self, commit: str, tree: str) -> None:
        if len(self._trees) >= _REMEMBERED:
            self._trees.clear()
        self._trees[commit] = tree

    async def first(self, run_key: str) -> tuple[str, SourceNotes]:
        """A run's first snapshot, and what it says about the source.

        Raises:
            UnknownSnapshot: the store has no first snapshot of the run.
        """
        await self.ready()
        base = await self.ref(run_key, "base")
        if base is None:
            raise UnknownSnapshot(ref_of(run_key, "base"), self.path)
        raw = await self.git().out("cat-file", "commit", base)
        return base, SourceNotes.read(raw.partition(b"\n\n")[2].decode())

    async def set_ref(self, run_key: str, name: str, commit: str) -> str:
        """Point a run's ref at a commit and return the ref."""
        ref = ref_of(run_key, name)
        await asyncio.to_thread(write_ref, self.path, ref, commit)
        return ref

    async def ref(self, run_key: str, name: str) -> str | None:
        """What a run's ref points at."""
        found = await self.git().run(
            "rev-parse", "--quiet", "--verify", ref_of(run_key, name), codes=(0, 1)
        )
        return None if found.code else found.stdout.decode().strip()

    async def delete_ref(self, run_key: str, name: str) -> None:
        await self.git().run("update-ref", "-d", ref_of(run_key, name))

    # --- content ----------------------------------------------------------------------------------

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes and return their object id. They stay while a snapshot holds them, and for the
        garbage collector's grace time otherwise."""
        return await self.git().line("hash-object", "-w", "--stdin", stdin=data)

    async def get_blob(self, blob: str) -> bytes:
        return await self.git().out("cat-file", "blob", blob)

    async def entry(self, commit: str, path: str) -> tuple[str, str] | None:
        """Mode and object id of what a snapshot has at `path`, or None."""
        found = await self.git().run(
            "--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", path
        )
        for line in found.stdout.split(b"\0"):
            fields, _, name = line.partition(b"\t")
            if os.fsdecode(name) == path:
                mode, _, oid = fields.decode().split(" ")
                return mode, oid
        return None

    async def changes(self, old: str, new: str) -> tuple[FileChange, ...]:
        """What differs between two snapshots, by path.

        Raises:
            UnknownSnapshot: one of them is missing.
        """
        trees = await self.tree_of(old), await self.tree_of(new)
        found = await asyncio.to_thread(lambda: self._objects().changes(*trees))
        if found is not None:
            return found
        return parse_changes(
            await self.git().out(
                "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
                "--raw", "--numstat", *trees, "--",
            )
        )  # fmt: skip

    def _objects(self) -> "Objects":
        from .objects import Objects  # loads libgit2

        return Objects(self.path / "objects")

    async def diff(self, old: str, new: str, limit: int) -> tuple[str, int]:
        """Unified diff of at most about `limit` bytes, cut at a line's end, and how many bytes more
        it has."""
        raw, omitted = await self.git().capped(
            "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
            old, new, "--", limit=limit,
        )  # fmt: skip
        if omitted:
            whole = raw[: raw.rfind(b"\n") + 1] or raw
            raw, omitted = whole, omitted + len(raw) - len(whole)
        return raw.decode(errors="replace"), omitted

    async def patch(self, old: str, new: str) -> bytes:
        """The whole difference as `git apply` reads it, binary files included."""
        return await self.git().out(
            "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames",
            "--no-ext-diff", "--no-textconv", "--no-color", old, new, "--",
        )  # fmt: skip

    async def merge(
        self, base: str, ours: str, theirs: str, *, alternates: Path | None = None
    ) -> Merged | Conflict:
        """Three-way merge of trees, or of commits' trees. Writes to no work tree."""
        git = self.git(alternates=alternates)
        named = (f"{side}^{{tree}}" for side in (base, ours, theirs))
        trees = (await git.out("rev-parse", *named)).decode().split()
        root = self.commit(trees[0], [], "base")
        sides = (self.commit(trees[1], [root], "ours"), self.commit(trees[2], [root], "theirs"))
        merged = await git.run(
            "merge-tree", "--write-tree", "-z", "--name-only", "--messages", *sides, codes=(0, 1)
        )
        tree, *rest = merged.stdout.split(b"\0")
        if merged.code == 0:
            return Merged(tree.decode())
        paths = rest[: rest.index(b"")] if b"" in rest else rest
        names = tuple(sorted({shown(path) for path in paths}))
        return Conflict(names, "the source changed in the same places")


def ref_of(run_key: str, name: str) -> str:
    return f"{REFS}/{run_key}/{name}"
