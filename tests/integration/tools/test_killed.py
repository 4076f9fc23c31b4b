"""A worker killed at any moment of a tool call: repeated from its base snapshot, the call has its
effect once."""

import asyncio
import random
from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.locks import file_lock
from io_harness.activities.prepare import make_copy
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from tests.forks import FORKS
from tests.integration.tools import victim
from tests.unit.tools.conftest import make_contract

KILLS = 6
"""Kills of one call before it is let through."""
LONGEST = 0.12
"""Seconds after the call's begin; most calls are over by then."""

PATCH = """\
--- a/one.txt
+++ b/one.txt
@@ -1 +1,2 @@
 one
+more
--- a/two.txt
+++ b/two.txt
@@ -1 +1,2 @@
 two
+more
"""
CALLS: list[tuple[str, dict[str, JsonValue]]] = [
    ("edit_file", {"path": "one.txt", "old": "one\n", "new": "one\nmore\n"}),
    ("apply_patch", {"patch": PATCH}),
    ("run_command", {"command": "for f in one.txt two.txt; do echo more >> $f; sleep 0.02; done"}),
]


def attempt(
    data_dir: Path, base: str, tool: str, arguments: dict[str, JsonValue], seconds: float | None
) -> str | None:
    """Run the call in a process of its own, killed after so many seconds unless it ended; the head."""
    told, tells = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=victim.use_tool, args=(tells, data_dir, base, tool, arguments))
    process.start()
    tells.close()
    with told:
        assert told.recv() == "begun"
        process.join(seconds)
        process.kill()
        process.join()
        return str(told.recv()) if process.exitcode == 0 else None


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
async def test_each_effect_once(tool: str, arguments: dict[str, JsonValue], tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "one.txt").write_text("one\n")
    (source / "two.txt").write_text("two\n")
    data_dir = tmp_path / "data"
    store, paths = SnapshotStore(data_dir), CopyPaths.of(Settings(data_dir=data_dir), "run")
    contract = make_contract(workspace={"kind": "directory", "path": str(source)})
    await store.ready()
    async with file_lock(paths.lock) as lock:
        base = await make_copy(store, paths, contract, lock)
    moments = random.Random(tool)
    for _ in range(KILLS):
        seconds = moments.random() * LONGEST
        await asyncio.to_thread(attempt, data_dir, base, tool, arguments, seconds)
    head = await asyncio.to_thread(attempt, data_dir, base, tool, arguments, None)
    assert head is not None
    expected_two = "two\n" if tool == "edit_file" else "two\nmore\n"
    assert await store.git().out("show", f"{head}:one.txt") == b"one\nmore\n"
    assert (await store.git().out("show", f"{head}:two.txt")).decode() == expected_two
    assert [c.path for c in await store.changes(base, head)] == (
        ["one.txt"] if tool == "edit_file" else ["one.txt", "two.txt"]
    )
    assert await store.git().line("rev-parse", f"{head}^") == base
