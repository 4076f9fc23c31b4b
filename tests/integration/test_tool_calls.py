"""Tools as a run calls them: through the workflow and the activity, on the real server."""

import asyncio
import base64
from pathlib import Path

import pytest

from io_harness.workflows.result import Outcome, RunResult
from tests.scripted import Call, call, turn

from .conftest import FIXED, Repo, Start

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def fix() -> Call:
    return call("edit_file", path="calc.py", old="a - b", new="a + b")


def finish() -> Call:
    return call("finish", summary="add adds now")


def succeeded(result: RunResult) -> None:
    assert result.outcome is Outcome.SUCCESS, result.reason


async def test_every_reading_tool(start: Start, repo: Repo) -> None:
    (repo.path / "dot.png").write_bytes(PNG)
    (repo.path / "long.txt").write_text("".join(f"line {n}\n" for n in range(20_000)))
    run = await start(
        turn(
            call("list_files", shows=("calc.py", "dot.png", "entries in .")),
            call("find", glob="*.py", shows=("calc.py\ntest_calc.py\n[2 files]",)),
            call("grep", pattern=r"def \w+\(a", shows=("calc.py\n1: def add(a, b):",)),
            call("read_file", path="calc.py", shows=("2\t    return a - b",)),
            call("read_file", path="dot.png", shows=("[dot.png: image/png, 67 bytes]",)),
            call("read_file", path="long.txt", fails=True, shows=("too_large", "end_line=")),
            call("run_command", command="cat long.txt", shows=("bytes omitted", "line 19999")),
            call(
                "read_output", handle="out-0000000000000000", fails=True, shows=("unknown_handle",)
            ),
            call("git_status", shows=("[no commit yet; 0 changed]",)),
        ),
        turn(fix(), finish()),
    )
    succeeded(await run.result())


async def test_what_the_model_did_wrong_is_told_and_costs_nothing(start: Start, repo: Repo) -> None:
    (repo.path / ".env").write_text("KEY=1\n")
    run = await start(
        turn(
            call("cat", path="calc.py", fails=True, shows=("there is no tool", "read_file")),
            call("read_file", fails=True, shows=("invalid_arguments", "path: Field required")),
            call("write_file", path="calc.py", content=None, fails=True,
                 shows=("content: Input should be a valid string",)),
            call("write_file", path="../out", content="x", fails=True,
                 shows=("outside_workspace",)),
            call("edit_file", path="calc.py", old="nothing", new="x", fails=True,
                 shows=("no_match",)),
            call("read_file", path=".env", fails=True, shows=("refused", "layer")),
        ),
        turn(fix(), finish()),
    )  # fmt: skip
    result = await run.result()
    succeeded(result)
    assert result.landing is not None
    assert result.landing.kind == "landed"
    assert [f.path for f in result.landing.files] == ["calc.py"]


async def test_two_edits_of_one_file_in_one_turn_both_land_in_order(
    start: Start, repo: Repo
) -> None:
    run = await start(
        turn(
            call("edit_file", path="calc.py", old="a - b", new="b + a"),
            call("edit_file", path="calc.py", old="b + a", new="a + b"),
            call("read_file", path="calc.py", shows=("return a + b",)),
            finish(),
        )
    )
    succeeded(await run.result())
    assert repo.read("calc.py") == FIXED


async def test_the_agents_own_commits(
    start: Start, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ada@example.org")
    hook = repo.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    run = await start(
        turn(call("git_commit", message="nothing", fails=True, shows=("nothing has changed",))),
        turn(
            call("write_file", path="notes.txt", content="1\n"),
            call("git_status", shows=("A notes.txt (+1 -0)\n[no commit yet; 1 changed]",)),
            call("git_diff", shows=("+++ b/notes.txt", "+1")),
            call("git_commit", message="Take notes\n\nin a file", shows=("committed 1 changed",)),
            call("git_status", shows=("on top of", "Take notes; 0 changed")),
        ),
        turn(
            call("git_log", shows=("Ada <ada@example.org>", "    Take notes\n    \n    in a file")),
            call("git_diff", shows=("[no changes]",)),
            call("git_diff", since="start", shows=("+++ b/notes.txt",)),
            call("git_diff", since="start", path="calc.py", shows=("no changes in calc.py",)),
            fix(),
            call("git_diff", shows=("-    return a - b\n+    return a + b",)),
            call("git_commit", message="Add"),
            call("git_log", limit=1, shows=("Add",)),
            call("run_command", command="rm notes.txt"),
            call("git_status", shows=("D notes.txt (+0 -1)",)),
            finish(),
        ),
    )
    result = await run.result()
    succeeded(result)
    assert repo.git("status", "--porcelain") == "M calc.py"
    assert not (repo.path / "hooked").exists()


async def test_a_job_dies_with_its_run(start: Start, tmp_path: Path, repo: Repo) -> None:
    beat = "while :; do date +%s%N > beat; sleep 0.05; done"
    (repo.path / ".gitignore").write_text("beat\n__pycache__/\n")
    run = await start(
        turn(call("start_job", command=beat, shows=("runs for",))),
        turn(call("run_command", command="sleep 0.5; a=$(cat beat); sleep 0.5; "
                  "test $a != $(cat beat) && echo alive", shows=("alive",))),
        turn(fix(), finish()),
    )  # fmt: skip
    succeeded(await run.result())
    await asyncio.sleep(1)
    running = [
        process
        for process in Path("/proc").glob("[0-9]*")
        if beat.encode() in _command_line(process)
    ]
    assert running == []


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_plan_is_shown_and_a_patch_applies(start: Start, repo: Repo) -> None:
    patch = (
        "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n"
        "-    return a - b\n+    return a + b\n"
    )
    run = await start(
        turn(
            call("update_plan", items=[{"text": "fix add", "status": "doing"}]),
            call("apply_patch", patch=patch, shows=("updated calc.py",)),
            finish(),
        )
    )
    succeeded(await run.result())
    assert repo.read("calc.py") == FIXED
