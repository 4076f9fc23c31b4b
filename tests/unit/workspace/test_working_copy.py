"""A tool call is a function of a snapshot."""

import asyncio
import os
from pathlib import Path

import pytest

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore, UnknownSnapshot
from io_harness.activities.workspace import open_copy

from .conftest import RUN, begin, contract_for, git


async def test_a_change_becomes_a_snapshot_on_its_base(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("one\nTWO\nthree\nfour\nfive\n")
        (copy.root / "new").mkdir()
        (copy.root / "new" / "file").write_text("a\nb\n")
        (copy.root / "README.md").unlink()
        head, changes = await copy.snapshot("edit")
    assert [(c.path, c.status, c.added, c.removed) for c in changes] == [
        ("README.md", "deleted", 0, 1),
        ("app.py", "modified", 1, 1),
        ("new/file", "added", 2, 0),
    ]
    assert await store.git().line("rev-parse", f"{head}^") == base
    assert await store.ref(RUN, "head") == head


async def test_the_same_call_from_the_same_base_gives_the_same_snapshot(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    heads = []
    for _ in range(2):
        async with open_copy(store, settings, RUN, contract, base) as copy:
            copy.begin_change()
            file = copy.root / "app.py"
            file.write_text(file.read_text() + "six\n")
            heads.append((await copy.snapshot("append"))[0])
            assert file.read_text().count("six") == 1
    assert heads[0] == heads[1] != base


async def test_nothing_changed_is_the_base_itself(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        os.utime(copy.root / "app.py")
        assert await copy.snapshot("nothing") == (base, ())


async def test_an_interrupted_change_is_undone(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("*.log\n")
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").unlink()
        (copy.root / "app.py").symlink_to("/etc/passwd")
        (copy.root / "junk" / "deep").mkdir(parents=True)
        (copy.root / "junk" / "deep" / "file").write_text("x")
        git(copy.root, "init", "-q", "inner")
        (copy.root / "kept.log").write_text("an ignored file stays")
    async with open_copy(store, settings, RUN, contract, base) as copy:
        assert (copy.root / "app.py").read_text() == "one\ntwo\nthree\nfour\nfive\n"
        assert not (copy.root / "app.py").is_symlink()
        assert sorted(p.name for p in copy.root.iterdir()) == [
            ".gitignore", "README.md", "app.py", "kept.log",
        ]  # fmt: skip


async def test_a_lock_that_a_killed_git_left_is_no_obstacle(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("half")
    CopyPaths.of(settings, RUN).index.with_name("index.lock").touch()
    async with open_copy(store, settings, RUN, contract, base) as copy:
        assert (copy.root / "app.py").read_text().startswith("one")


async def test_after_a_power_failure_files_are_compared_by_content(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    paths = CopyPaths.of(settings, RUN)
    (paths.root / "app.py").write_text("lost\n")
    state = paths.directory / "state"
    assert paths.clean_at(base)
    state.write_text(f"{base} another-boot")
    paths.index.write_bytes(b"torn")
    async with open_copy(store, settings, RUN, contract, base) as copy:
        assert (copy.root / "app.py").read_text().startswith("one")


async def test_a_missing_copy_is_made_again_from_the_snapshot(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("modules/\n")
    (source / "modules").mkdir()
    (source / "modules" / "lib.js").write_text("lib")
    contract = contract_for(source, workspace={"setup": "echo made > made.txt"})
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("changed\n")
        head, _ = await copy.snapshot("change")
    os.rename(copy.root, copy.root.with_name("elsewhere"))
    CopyPaths.of(settings, RUN).mark_dirty()
    async with open_copy(store, settings, RUN, contract, head) as copy:
        assert (copy.root / "app.py").read_text() == "changed\n"
        assert (copy.root / "made.txt").read_text() == "made\n"
        assert (copy.root / "modules" / "lib.js").read_text() == "lib"
        assert await copy.snapshot("nothing") == (head, ())


async def test_an_unknown_snapshot_is_told_apart(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    await begin(store, settings, contract)
    with pytest.raises(UnknownSnapshot, match="0123456789"):
        async with open_copy(store, settings, RUN, contract, "0123456789" * 4):
            pass


async def test_writers_exclude_each_other_and_readers_do_not(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    inside: list[str] = []

    async def use(name: str, access: str, others: int) -> None:
        async with open_copy(store, settings, RUN, contract, base, access=access):  # type: ignore[arg-type]
            inside.append(name)
            async with asyncio.timeout(10):
                while len(inside) < others:
                    await asyncio.sleep(0.01)

    await asyncio.gather(use("a", "read", 2), use("b", "read", 2))  # each waits for the other
    writer = asyncio.create_task(use("w", "write", 4))
    await asyncio.sleep(0.1)
    late = asyncio.create_task(use("x", "write", 0))
    await asyncio.sleep(0.1)
    assert inside[2:] == ["w"]
    inside.append("go")
    await asyncio.gather(writer, late)
    assert inside[2:] == ["w", "go", "x"]


async def test_a_waiting_writer_can_be_cancelled(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), open_copy(store, settings, RUN, contract, base):
                pass
    async with open_copy(store, settings, RUN, contract, base):
        pass


async def test_a_reader_may_not_begin_a_change(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base, access="read") as copy:
        with pytest.raises(RuntimeError, match="for reading"):
            copy.begin_change()


async def test_a_reader_of_a_changed_copy_gets_it_restored(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("half")
    async with open_copy(store, settings, RUN, contract, base, access="read") as copy:
        assert (copy.root / "app.py").read_text().startswith("one")


async def test_the_users_repository_is_never_written(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in sorted(source.rglob("*"))
        }

    git(source, "config", "core.untrackedCache", "true")
    os.utime(source / "app.py", (1, 1))  # an index refresh would note this
    before = state()
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("changed")
        await copy.snapshot("change")
    assert state() == before
