"""What is staged without git is what git stages."""

import asyncio
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from io_harness.activities import seen, stamps
from io_harness.activities.git import Git
from io_harness.activities.seen import SeenCopies
from io_harness.activities.staging import stage_all
from io_harness.activities.store import SnapshotStore

from .conftest import git as run_git

SETTLED_SECONDS = 0.05


@pytest.fixture
def copy(store: SnapshotStore, tmp_path: Path) -> Git:
    root = tmp_path / "copy"
    for name in "a.py", "b.py", "sub/c.py", "sub/deep/d.txt", "sub/deep/e\udcff", "built/old.o":
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.name[0]}\n")
    (root / ".gitignore").write_text("*.log\nbuilt/\n")
    (root / "x.log").write_text("x\n")
    (root / "link").symlink_to("a.py")
    return store.git(work_tree=root, index=tmp_path / "index", excludes=tmp_path / "excludes")


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[Git]:
    """Each staging by git."""
    calls: list[Git] = []

    async def counted(git: Git) -> None:
        calls.append(git)
        await stage_all(git)

    monkeypatch.setattr(seen, "stage_all", counted)
    monkeypatch.setattr(stamps, "_SETTLED_NS", SETTLED_SECONDS * 1e9)
    return calls


async def by_git(copy: Git, before: str | None) -> str:
    """From the tree before, as what it has stays when it comes to be ignored; but without what git
    remembers of files: a change of the same second, with size and time as before, escapes it."""
    assert copy.index is not None
    other = replace(copy, index=copy.index.with_name("other-index"))
    await other.run("read-tree", before or "--empty")
    await stage_all(other)
    return await other.line("write-tree")


Act = Callable[[Path, random.Random], object]


def is_own(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and ".git" not in path.parts


def _some_file(root: Path, chance: random.Random) -> Path:
    files = sorted(path for path in root.rglob("*") if is_own(path))
    return chance.choice(files)


def _append(root: Path, chance: random.Random) -> None:
    with _some_file(root, chance).open("ab") as file:
        file.write(b"more\xff\n")


def _same_size_and_time(root: Path, chance: random.Random) -> None:
    path = _some_file(root, chance)
    status = path.stat()
    path.write_bytes(chance.randbytes(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _exchange(root: Path, chance: random.Random) -> None:
    one, other = _some_file(root, chance), _some_file(root, chance)
    if one != other:
        one.rename(root / "between")
        other.rename(one)
        (root / "between").rename(other)


def _relink(root: Path, chance: random.Random) -> None:
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to(chance.choice(["a.py", "/etc/passwd", "sub"]))


def _folder_for_file(root: Path, chance: random.Random) -> None:
    path = _some_file(root, chance)
    path.unlink()
    path.mkdir()
    (path / "inner").write_text("i\n")


def _link_for_folder(root: Path, _: random.Random) -> None:
    if not (root / "sub").is_symlink():
        (root / "sub").rename(root / "moved")
        (root / "sub").symlink_to("moved")
    else:
        (root / "sub").unlink()
        (root / "moved").rename(root / "sub")


def _ignore_otherwise(root: Path, chance: random.Random) -> None:
    (root / ".gitignore").write_text(
        chance.choice(["*.log\n", "built/\nnew*\n", "", "*.log\nb*\n"])
    )


USUAL: tuple[Act, ...] = (
    _append,
    _exchange,
    _relink,
    lambda root, chance: _some_file(root, chance).touch(),
    lambda root, chance: _some_file(root, chance).chmod(chance.choice([0o644, 0o755, 0o600])),
    lambda root, chance: (root / "built" / f"{chance.random()}.o").write_text("o\n"),
)
ALL: tuple[Act, ...] = (
    *USUAL,
    lambda root, chance: _some_file(root, chance).unlink(),
    lambda root, chance: (root / f"new{chance.randrange(9)}").write_text("n\n"),
    lambda root, chance: (root / f"{chance.randrange(9)}.log").write_text("l\n"),
    lambda root, chance: shutil.rmtree(root / "sub" / "deep", ignore_errors=True),
    lambda root, chance: run_git(_some_file(root, chance).parent, "init", "-q"),
    _folder_for_file,
    _link_for_folder,
    _ignore_otherwise,
)


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_tree_is_the_one_that_git_makes(copy: Git, staged: list[Git], seed: int) -> None:
    assert copy.work_tree is not None
    chance, copies = random.Random(seed), SeenCopies()
    tree = await copies.tree(copy, "none")
    assert tree == await by_git(copy, None)
    for step in range(25):
        await asyncio.sleep(chance.choice([0, SETTLED_SECONDS * 1.5]))
        act = chance.choice(ALL if step % 3 == 0 else USUAL)
        act(copy.work_tree, chance)
        before, tree = tree, await copies.tree(copy, tree)
        assert tree == await by_git(copy, before)
    assert len(staged) < 20


async def test_git_is_not_asked_about_what_files_hold(copy: Git, staged: list[Git]) -> None:
    assert copy.work_tree is not None
    copies = SeenCopies()
    tree = await copies.tree(copy, "none")
    assert len(staged) == 1
    for seconds in (0, SETTLED_SECONDS * 1.5):
        await asyncio.sleep(seconds)
        for act in (*USUAL, _same_size_and_time):
            act(copy.work_tree, random.Random(1))
            before, tree = tree, await copies.tree(copy, tree)
            assert tree == await by_git(copy, before)
    assert len(staged) == 1
    (copy.work_tree / "new.py").write_text("n\n")
    tree = await copies.tree(copy, tree)
    assert len(staged) == 2
    assert await copies.tree(copy, "another base") == tree
    assert len(staged) == 3


async def test_a_tree_of_many_files_is_left_to_git(
    copy: Git, staged: list[Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copy.work_tree is not None
    monkeypatch.setattr("io_harness.activities.look._MOST_ENTRIES", 5)
    copies = SeenCopies()
    tree = await copies.tree(copy, "none")
    (copy.work_tree / "a.py").write_text("changed\n")
    assert await copies.tree(copy, tree) == await by_git(copy, tree)
    assert len(staged) == 2
