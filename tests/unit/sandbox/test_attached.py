"""A command that is talked to while it runs."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.sandbox.attached import attach

ECHO = "import sys\nfor line in sys.stdin:\n    print(line.upper(), end='', flush=True)\n"


def plan(tmp_path: Path, script: str, **more: object) -> sandbox.Plan:
    return sandbox.Plan(
        argv=(sys.executable, "-c", script),
        cwd=tmp_path,
        workspace=tmp_path,
        env=sandbox.base_env(),
        read_only_roots=tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix)))),
        **more,  # type: ignore[arg-type]
    )


async def test_it_answers_line_by_line_and_ends_with_its_input(tmp_path: Path) -> None:
    async with attach(plan(tmp_path, ECHO)) as attached:
        for word in (b"one\n", b"two\n"):
            await attached.write(word)
            assert await attached.stdout.readline() == word.upper()
    assert attached.exit is not None
    assert attached.exit.code == 0


async def test_what_ignores_the_end_of_its_input_is_killed_with_its_children(
    tmp_path: Path,
) -> None:
    script = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)\n"
    )
    async with attach(plan(tmp_path, script)) as attached:
        assert await attached.stdout.readline() == b"up\n"
        members = list(attached._running.members())
        assert len(members) >= 2
    assert attached.exit is not None
    assert attached.exit.signal is not None
    for pid in members:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_its_standard_error_is_kept_apart(tmp_path: Path) -> None:
    script = "import sys\nprint('oops', file=sys.stderr)\nsys.exit(3)\n"
    async with attach(plan(tmp_path, script)) as attached:
        assert await attached.wait() == "exited"
    assert attached.exit is not None
    assert attached.exit.code == 3
    assert attached.stderr.text() == "oops\n"


async def test_a_flood_that_nobody_reads_holds_the_command_up_and_not_memory(
    tmp_path: Path,
) -> None:
    script = "import sys\nwhile True:\n    sys.stdout.write('x' * 65536)\n"
    async with attach(plan(tmp_path, script)) as attached:
        await asyncio.sleep(0.5)
        assert len(attached.stdout._buffer) <= 2 * 256 * 1024 + 65536  # type: ignore[attr-defined]
        assert attached.exit is None


async def test_a_limit_ends_it(tmp_path: Path) -> None:
    script = "import time\nx = b'x' * (300 * 1024 * 1024)\ntime.sleep(60)\n"
    limits = sandbox.Limits(memory_bytes=100 * 1024 * 1024)
    async with attach(plan(tmp_path, script, limits=limits)) as attached:
        assert await attached.wait() == "memory"


async def test_cancelling_the_body_leaves_nothing(tmp_path: Path) -> None:
    script = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
    members: list[int] = []

    async def hold() -> None:
        async with attach(plan(tmp_path, script)) as attached:
            await attached.stdout.readline()
            members.extend(attached._running.members())
            await asyncio.sleep(600)

    task = asyncio.create_task(hold())
    while not members:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in members:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
