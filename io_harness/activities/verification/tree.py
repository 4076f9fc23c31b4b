"""Makes the tree that is verified: the head snapshot, without what the agent must not decide."""

import os
from collections.abc import Collection, Iterable, Mapping

from io_harness.activities.git import Git
from io_harness.activities.notes import SourceNotes, from_note
from io_harness.activities.staging import drop_within
from io_harness.activities.trees import is_within


async def verified_tree(
    git: Git,
    base: str,
    head: str,
    notes: SourceNotes,
    protect: Iterable[str],
    laid_over: Mapping[str, str],
) -> str:
    """The tree of `head` with protected paths as in `base`, with files of the contract's own, and
    without files in places that were ignored when the agent began.

    The last is because the agent may edit `.gitignore`: files of an environment would then be part
    of its snapshot, prepared to pass.

    Args:
        git: git on the store with an index that nobody else uses. No work tree is touched.
    """
    await git.run("read-tree", head)
    own = {os.fsencode(path) for path in (*protect, *laid_over)}
    own |= {from_note(name) for name in notes.derived}
    entries = await _entries(git, base, own - {os.fsencode(path) for path in laid_over})
    for path, text in laid_over.items():
        blob = await git.line("hash-object", "-w", "--stdin", stdin=text.encode())
        entries += f"100644 {blob} 0\t".encode() + os.fsencode(path) + b"\0"
    await drop_within(git, own)
    await git.run("update-index", "--replace", "-z", "--index-info", stdin=entries)
    return await git.line("write-tree")


async def _entries(git: Git, commit: str, paths: Collection[bytes]) -> bytes:
    """What `commit` has at and below these paths, as `update-index --index-info` reads it."""
    if not paths:
        return b""
    listed = await git.out("ls-tree", "-r", "-z", "--full-tree", commit)
    entries = b""
    for line in listed.split(b"\0"):
        fields, _, name = line.partition(b"\t")
        if name and is_within(name, paths):
            mode, _, oid = fields.split(b" ")
            entries += mode + b" " + oid + b" 0\t" + name + b"\0"
    return entries
