"""Nothing that a live or resettable run needs is ever removed; the rest goes once it is old."""

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.gc import Ages, Garbage, KeptRun, KnownRuns, collect, kept_runs, plan
from io_harness.activities.locks import file_lock
from io_harness.activities.prepare import make_copy
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy

from .conftest import contract_for

DAY = 86_400.0
NOW = 1000 * DAY
HERE = "namespace-id"

KEYS = st.sampled_from(["a", "b", "c", "d"])
RUNS = st.builds(
    KeptRun,
    key=KEYS,
    used_at=st.floats(0, NOW),
    has_copy=st.booleans(),
    has_snapshots=st.booleans(),
    namespace=st.sampled_from([HERE, "another", None]),
)


@given(
    kept=st.lists(RUNS, unique_by=lambda run: run.key),
    running=st.sets(KEYS),
    closed=st.sets(KEYS),
)
def test_what_is_needed_stays(kept: list[KeptRun], running: set[str], closed: set[str]) -> None:
    ages = Ages()
    garbage = plan(kept, KnownRuns(HERE, running, closed), ages, NOW)
    by_key = {run.key: run for run in kept}
    assert not set(garbage.runs) & (running | closed)
    assert not set(garbage.copies) & running
    for key in (*garbage.runs, *garbage.copies):
        run = by_key[key]
        assert run.namespace == HERE or not run.has_snapshots
        assert (NOW - run.used_at) / DAY > min(ages.run_days, ages.copy_days)
    for key in garbage.runs:
        assert (NOW - by_key[key].used_at) / DAY > ages.run_days


def run(key: str, days: float, namespace: str | None = HERE, snapshots: bool = True) -> KeptRun:
    return KeptRun(key, NOW - days * DAY, True, snapshots, namespace)


def test_what_nobody_needs_goes_once_it_is_old() -> None:
    kept = [
        run("old", 8),
        run("young", 6),
        run("running", 400),
        run("closed", 2),
        run("just-closed", 0.5),
        run("foreign", 400, "another"),
        run("unnoted", 400, None),
        run("never-began", 8, None, snapshots=False),
    ]
    known = KnownRuns(HERE, {"running"}, {"closed", "just-closed"})
    assert plan(kept, known, Ages(), NOW) == Garbage(
        copies=("closed",), runs=("never-began", "old")
    )


async def make_run(store: SnapshotStore, settings: Settings, source: Path, key: str) -> str:
    contract = contract_for(source)
    paths = CopyPaths.of(settings, key)
    async with file_lock(paths.lock) as lock:
        base = await make_copy(store, paths, contract, lock, HERE)
    async with open_copy(store, settings, key, contract, base) as copy:
        copy.begin_change()
        (copy.root / "own.txt").write_text(f"only in {key}\n")
        head, _ = await copy.snapshot("own")
    outputs = settings.data_dir / "outputs" / key
    outputs.mkdir(parents=True)
    (outputs / "out-0").write_text("spilled")
    return head


async def test_collecting_removes_what_was_planned_and_keeps_the_rest_usable(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    heads = {key: await make_run(store, settings, source, key) for key in ("gone", "kept", "reset")}
    found = {run.key: run for run in await kept_runs(settings, store)}
    assert set(found) == set(heads)
    for run in found.values():
        assert (run.has_copy, run.has_snapshots, run.namespace) == (True, True, HERE)
        assert abs(run.used_at - time.time()) < 60
    age_objects(store, days=31)
    await collect(Garbage(copies=("reset",), runs=("gone",)), settings, store, Ages())
    left = {run.key: run.has_copy for run in await kept_runs(settings, store)}
    assert left == {"kept": True, "reset": False}
    assert not (settings.data_dir / "outputs" / "gone").exists()
    assert (settings.data_dir / "outputs" / "reset").exists()
    again = SnapshotStore(settings.data_dir)
    assert await holds(again, heads["kept"])
    assert not await holds(again, heads["gone"])
    for key in ("kept", "reset"):
        async with open_copy(again, settings, key, contract_for(source), heads[key]) as copy:
            assert (copy.root / "own.txt").read_text() == f"only in {key}\n"
            assert (copy.root / "app.py").read_text().startswith("one")


async def test_young_objects_survive_their_run(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    head = await make_run(store, settings, source, "gone")
    await collect(Garbage(runs=("gone",)), settings, store, Ages())
    assert await holds(SnapshotStore(settings.data_dir), head)


async def test_collecting_again_is_no_error(store: SnapshotStore, settings: Settings) -> None:
    for _ in range(2):
        await collect(Garbage(copies=("a",), runs=("b",)), settings, store, Ages())


def age_objects(store: SnapshotStore, days: float) -> None:
    then = time.time() - days * DAY
    for path in (store.path / "objects").rglob("*"):
        os.utime(path, (then, then))


async def holds(store: SnapshotStore, commit: str) -> bool:
    found = await store.git().run("cat-file", "-e", commit, codes=(0, 1, 128))
    return found.code == 0
