"""Brings a git index up to date with its work tree, whatever the tree holds."""

from collections.abc import Collection

from .git import Git
from .trees import is_within, make_readable

_PROBE = b".io-harness-probe"
_EMPTY_BLOB = b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_NO_OBJECT = b"0" * 40
_NESTING = 16


async def stage_all(git: Git, *, repair: bool = True) -> None:
    """Add, update and remove so that the index is what the tree holds, ignored files excepted.

    Files inside a nested git repository are taken like all others. git itself would record such a
    folder as one link to a commit that we don't have, and its files would be lost.

    Args:
        repair: Whether files without read permission may be made readable.

    Raises:
        GitError: a file can't be read.
    """
    known: set[bytes] = set()
    repaired = not repair
    for _ in range(_NESTING):
        added = await git.run("add", "-A", codes=(0, 128))
        if added.code == 0 and not added.stderr:
            return
        nested = await _nested(git)
        if fresh := nested - known:
            known |= fresh
            await _open_up(git, fresh)
        elif added.code and not repaired:
            assert git.work_tree is not None
            make_readable(git.work_tree)
            repaired = True
        else:
            break
    # What is left is a repository without any file of its own: nothing to keep.
    await git.run("add", "-A", "--ignore-errors", codes=(0, 1) if known else (0,))
    await drop_links(git)


async def list_ignored(git: Git) -> list[bytes]:
    """Ignored files of git's work tree, folders that are ignored as a whole named once."""
    listed = await git.out(
        "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"
    )
    return [name.rstrip(b"/") for name in listed.split(b"\0") if name]


async def drop_links(git: Git) -> None:
    """Take entries for nested repositories out of the index."""
    await _forget(git, await _links(git))


async def drop_within(git: Git, folders: Collection[bytes]) -> None:
    """Take these paths and all below them out of the index."""
    if folders:
        listed = await git.out("ls-files", "--cached", "-z")
        names = {name for name in listed.split(b"\0") if is_within(name, folders)}
        await _forget(git, names)


async def _nested(git: Git) -> set[bytes]:
    untracked = await git.out("ls-files", "--others", "--exclude-standard", "-z")
    folders = {name.rstrip(b"/") for name in untracked.split(b"\0") if name.endswith(b"/")}
    return folders | await _links(git)


async def _links(git: Git) -> set[bytes]:
    staged = await git.out("ls-files", "--stage", "-z")
    return {
        entry.partition(b"\t")[2] for entry in staged.split(b"\0") if entry.startswith(b"160000 ")
    }


async def _open_up(git: Git, folders: set[bytes]) -> None:
    """Put an entry below each folder into the index: git then descends instead of linking. The next
    `git add` drops the entry, whose file doesn't exist."""
    await _forget(git, folders)
    probes = b"".join(
        b"100644 " + _EMPTY_BLOB + b" 0\t" + folder + b"/" + _PROBE + b"\0"
        for folder in sorted(folders)
    )
    await git.run("update-index", "-z", "--index-info", stdin=probes)


async def _forget(git: Git, paths: set[bytes]) -> None:
    if paths:
        removals = b"".join(b"0 " + _NO_OBJECT + b"\t" + path + b"\0" for path in sorted(paths))
        await git.run("update-index", "-z", "--index-info", stdin=removals)
