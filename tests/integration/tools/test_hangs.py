"""Everything that could hang, and that each ends in bounded time."""

import asyncio
import os
import time
from collections.abc import Coroutine
from pathlib import Path

import pytest

from io_harness.activities.gate import Refused
from io_harness.activities.tools.context import AsksNeeded
from io_harness.activities.tools.errors import ToolError
from io_harness.workflows.messages import Observation
from tests.unit.tools.conftest import Call

PATIENCE = 45.0
"""Seconds. What hangs would take for ever; most cases take milliseconds."""


@pytest.fixture
def traps(root: Path) -> Path:
    """A tree of everything on which an unwary reader stops."""
    os.mkfifo(root / "fifo")
    (root / "link-to-fifo").symlink_to("fifo")
    (root / "loop").symlink_to("loop")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    (root / "up").symlink_to(".")
    (root / "zero").symlink_to("/dev/zero")
    (root / "tty").symlink_to("/dev/tty")
    (root / "stdin").symlink_to("/proc/self/fd/0")
    (root / "text").write_text("needle\n" + "a" * 60 + "!\n")
    deep = root
    for _ in range(200):
        deep = deep / "d"
        deep.mkdir()
    (deep / "text").write_text("needle\n")
    (root / "one-line").write_text("x" * 4_000_000)
    (root / "sparse").touch()
    os.truncate(root / "sparse", 1 << 27)
    return root


async def ends(work: Coroutine[None, None, Observation]) -> str:
    begun = time.monotonic()
    try:
        text = (await asyncio.wait_for(work, PATIENCE)).text
    except (ToolError, Refused, AsksNeeded) as error:
        text = str(error)
    assert time.monotonic() - begun < PATIENCE
    return text


PLACES = ["fifo", "link-to-fifo", "loop", "ping", "zero", "tty", "stdin", "sparse", "one-line",
          "up/up/up/text", "d/" * 200 + "text"]  # fmt: skip


@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize("place", PLACES, ids=lambda p: p[:20])
class TestFiles:
    async def test_read(self, place: str, call: Call) -> None:
        await ends(call("read_file", path=place))

    async def test_edit(self, place: str, call: Call) -> None:
        await ends(call("edit_file", path=place, old="needle", new="n"))

    async def test_write(self, place: str, call: Call) -> None:
        await ends(call("write_file", path=place, content="x"))

    async def test_patch(self, place: str, call: Call) -> None:
        patch = f"--- a/{place}\n+++ b/{place}\n@@ -1 +1 @@\n-needle\n+n\n"
        await ends(call("apply_patch", patch=patch))

    async def test_list(self, place: str, call: Call) -> None:
        await ends(call("list_files", path=place))

    async def test_grep(self, place: str, call: Call) -> None:
        await ends(call("grep", pattern="needle", path=place))


@pytest.fixture
def wide(traps: Path) -> None:
    (traps / "wide").mkdir()
    for number in range(2000):
        (traps / "wide" / f"{number}.txt").write_text("needle\n")


@pytest.mark.usefixtures("wide")
class TestTrees:
    async def test_list(self, call: Call) -> None:
        assert "entries" in await ends(call("list_files", depth=5))

    async def test_find(self, call: Call) -> None:
        text = await ends(call("find", glob="**", limit=1000))
        assert "2,004 files" in text
        assert "next offset" in text

    @pytest.mark.parametrize("pattern", ["needle", "(a+)+$", "(a|a)*b", "(.*)*(.*)*!!", "x*x*x*y"])
    async def test_grep(self, pattern: str, call: Call) -> None:
        assert "matching line" in await ends(call("grep", pattern=pattern))


async def test_edits_of_large_texts(root: Path, call: Call) -> None:
    lines = [f"line {n % 7}" for n in range(60_000)]
    ends_of = ["\r\n" if n % 3 else "\n" for n in range(60_000)]
    text = "".join(a + b for a, b in zip(lines, ends_of, strict=True))
    (root / "f").write_bytes(text.encode())
    content = "".join(f"line {(n * 5) % 7}\n" for n in range(60_000))
    assert "wrote f" in await ends(call("write_file", path="f", content=content))
    assert "ambiguous" in await ends(call("edit_file", path="f", old="l", new="m"))
    count = content.count("line 3")
    assert "edited" in await ends(
        call("edit_file", path="f", old="line 3", new="LINE", expected_count=count)
    )
    hunk = "".join(f" line {n % 7}\n" for n in range(5000))
    patch = f"--- a/f\n+++ b/f\n@@ -1,5000 +1,5001 @@\n{hunk}+x\n"
    assert await ends(call("apply_patch", patch=patch))


@pytest.mark.parametrize(
    "command",
    ["cat", "yes | head -c 200000000 | tail -c 10", "sleep 300 & sleep 300 & echo x",
     "trap '' TERM INT HUP; (trap '' TERM; sleep 300) & echo x", "exec 1>&- 2>&-; sleep 0.1",
     "mkfifo p; cat p & echo x", "coproc cat; echo x", "kill -STOP $$ & echo x"],
)  # fmt: skip
async def test_commands(command: str, call: Call) -> None:
    await ends(call("run_command", command=command, timeout_seconds=10))


@pytest.mark.parametrize("command", ["yes", "kill -STOP $$", ":(){ :|:& };:", "cat /dev/zero"])
async def test_commands_that_never_end(command: str, call: Call) -> None:
    text = await ends(call("run_command", command=command, timeout_seconds=3))
    assert text


async def test_a_job_that_says_nothing(call: Call) -> None:
    text = await ends(call("start_job", command="sleep 300"))
    job = text[1:].split(" ", 1)[0]
    assert "runs for" in await ends(call("job_output", job=job, wait_seconds=2))
    assert "was stopped" in await ends(call("stop_job", job=job))
