"""The store speaks git's own formats."""

import os
from pathlib import Path

import pytest

from io_harness.activities.changes import parse_changes
from io_harness.activities.git import EPOCH
from io_harness.activities.store import Conflict, Merged, SnapshotStore, UnknownSnapshot


async def test_a_commit_is_the_one_that_git_makes(store: SnapshotStore) -> None:
    git = store.git()
    tree = await git.line("mktree")
    for message in "one\n", "two\n\nlines, ü\n":
        ours = store.commit(tree, [], message)
        theirs = await git.line("commit-tree", tree, stdin=message.encode())
        assert ours == theirs
    root = await git.line("commit-tree", tree, stdin=b"root\n")
    child = store.commit(tree, [ours, root], "merge\n")
    assert child == await git.line("commit-tree", tree, "-p", ours, "-p", root, stdin=b"merge\n")
    assert await git.line("log", "-1", "--format=%at %ai", child) == (
        f"{EPOCH.split()[0]} 2000-01-01 00:00:00 +0000"
    )
    await git.run("fsck", "--strict")


async def test_a_name_cannot_end_its_line(store: SnapshotStore) -> None:
    tree = await store.git().line("mktree")
    commit = store.commit(tree, [], "x\n", author=("Eve <x>\nparent", "a>b@example.org"))
    shown = await store.git().line("log", "-1", "--format=%an|%ae|%P", commit)
    assert shown == "Eve xparent|ab@example.org|"


async def test_merging_trees(store: SnapshotStore) -> None:
    async def tree(text: str) -> str:
        blob = await store.put_blob(text.encode())
        return await store.git().line("mktree", stdin=f"100644 blob {blob}\tf\n".encode())

    base, ours, theirs = [
        await tree(text) for text in ("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n")
    ]
    assert await store.merge(base, ours, theirs) == Merged(await tree("A\nb\nc\nD\n"))
    assert isinstance(await store.merge(base, ours, await tree("B\n")), Conflict)
    assert await store.merge(base, ours, ours) == Merged(ours)


async def test_a_diff_is_cut_at_a_lines_end_and_says_what_it_leaves_out(
    store: SnapshotStore,
) -> None:
    blob = await store.put_blob(b"line\n" * 10_000)
    git = store.git()
    empty = await git.line("mktree")
    tree = await git.line("mktree", stdin=f"100644 blob {blob}\tf\n".encode())
    whole, omitted = await store.diff(empty, tree, 1 << 20)
    assert omitted == 0
    part, omitted = await store.diff(empty, tree, 1000)
    assert len(part) <= 1000
    assert part.endswith("\n")
    assert whole.startswith(part)
    assert len(part) + omitted == len(whole)


async def test_changes_are_those_that_git_finds(store: SnapshotStore, tmp_path: Path) -> None:
    before: dict[bytes, bytes] = {
        b"same": b"1\n", b"text": b"a\nb\nc\n", b"gone": b"x\ny", b"binary": b"a\0b\n",
        b"file": b"1\n2\n", b"folder/a": b"a\n", b"folder/b": b"b\n", b"deep/er/still": b"one\n",
        b"raw-\xff\xfe": b"\xff\n", b"mode": b"m\n", b"link": b"l\n", b"big": b"line\n" * 200_000,
    }  # fmt: skip
    after = before | {
        b"text": b"a\nB\nc\nd", b"binary": b"a\0c\n", b"file/now": b"f\n", b"folder": b"none\n",
        b"deep/er/still": b"two\n", b"raw-\xff\xfe": b"\xfe\n", b"new": b"", b"tab\tnl\n": b"n\n",
    }  # fmt: skip
    for name in b"gone", b"file", b"folder/a", b"folder/b":
        del after[name]
    old = await committed(store, tmp_path / "old", before)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "link").symlink_to("elsewhere")
    new = await committed(store, tmp_path / "new", {k: v for k, v in after.items() if k != b"link"})
    larger = await committed(store, tmp_path / "larger", before | {b"big": b"line\n" * 200_001})
    empty = await committed(store, tmp_path / "empty", {})
    for pack in False, True:
        if pack:
            await store.git().run("repack", "-a", "-d", "-q")
        for one, other in ((old, new), (new, old), (empty, new), (old, empty), (old, larger)):
            printed = await store.git().out(
                "diff-tree", "-r", "-z", "--no-renames", "--raw", "--numstat", one, other
            )
            assert await store.changes(one, other) == parse_changes(printed)
    assert await store.changes(old, old) == ()
    with pytest.raises(UnknownSnapshot):
        await store.changes(old, "0" * 40)


async def committed(store: SnapshotStore, root: Path, files: dict[bytes, bytes]) -> str:
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        path = Path(os.fsdecode(os.path.join(os.fsencode(root), name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name == b"mode" and root.name == "old" else 0o644)
    git = store.git(work_tree=root, index=root.with_suffix(".index"))
    await git.run("add", "-A")
    commit = store.commit(await git.line("write-tree"), [], root.name)
    await store.set_ref("run", root.name, commit)
    return commit


async def test_a_ref_is_one_that_git_reads_and_deletes(store: SnapshotStore) -> None:
    tree = await store.git().line("mktree")
    first, second = store.commit(tree, [], "one"), store.commit(tree, [], "two")
    for commit in first, second:
        await store.set_ref("run", "head", commit)
        assert await store.ref("run", "head") == commit
    assert await store.git().line("for-each-ref", "--format=%(refname) %(objectname)") == (
        f"refs/io-harness/run/head {second}"
    )
    await store.git().run("pack-refs", "--all")
    await store.set_ref("run", "head", first)
    await store.git().run("fsck", "--strict")
    assert await store.ref("run", "head") == first
    await store.delete_ref("run", "head")
    assert await store.ref("run", "head") is None
    await store.set_ref("run", "head", second)  # git took the run's folder away
    assert await store.ref("run", "head") == second
