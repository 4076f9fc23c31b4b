"""The store speaks git's own formats."""

from io_harness.activities.git import EPOCH
from io_harness.activities.store import Conflict, Merged, SnapshotStore


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
