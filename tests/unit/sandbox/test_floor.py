"""The portable floor: limits, output, environment and a sure end."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.sandbox import Completed, Limits, Plan

FLOOR = "portable-floor"
PYTHON = sys.executable


def plan(directory: Path, *argv: str, **fields: object) -> Plan:
    given: dict[str, object] = {
        "argv": argv,
        "cwd": directory,
        "workspace": directory,
        "env": {"PATH": os.environ["PATH"]},
    }
    return Plan(**(given | fields))  # type: ignore[arg-type]


async def shell(directory: Path, script: str, **fields: object) -> Completed:
    return await sandbox.run(plan(directory, "/bin/sh", "-c", script, **fields), backend=FLOOR)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


async def test_exit_code_and_output(tmp_path: Path) -> None:
    done = await shell(tmp_path, "echo out; echo err >&2; exit 3")
    assert (done.cause, done.exit_code, done.signal) == ("exited", 3, None)
    assert done.stdout.text() == "out\nerr\n"
    assert done.stderr.total == 0


async def test_streams_apart(tmp_path: Path) -> None:
    done = await shell(tmp_path, "echo out; echo err >&2", merge_streams=False)
    assert (done.stdout.text(), done.stderr.text()) == ("out\n", "err\n")


async def test_signal(tmp_path: Path) -> None:
    done = await shell(tmp_path, "kill -TERM $$")
    assert (done.cause, done.exit_code, done.signal) == ("signalled", None, 15)


async def test_environment_exactly_as_given(tmp_path: Path) -> None:
    env = {"ONE": "1", "PATH": "/usr/bin:/bin"}
    done = await sandbox.run(plan(tmp_path, "env", env=env), backend=FLOOR)
    assert sorted(done.stdout.text().split()) == ["ONE=1", "PATH=/usr/bin:/bin"]


async def test_stdin_closed_or_fed(tmp_path: Path) -> None:
    assert (await shell(tmp_path, "cat")).stdout.total == 0
    big = os.urandom(3_000_000)
    done = await shell(tmp_path, "cat | wc -c", stdin=big)
    assert done.stdout.text().strip() == str(len(big))
    assert (await shell(tmp_path, "exit 0", stdin=big)).exit_code == 0


async def test_missing_program_is_the_commands_failure(tmp_path: Path) -> None:
    done = await sandbox.run(plan(tmp_path, "no-such-program"), backend=FLOOR)
    assert (done.cause, done.exit_code) == ("exited", 127)
    assert done.stdout.text() == "no-such-program: command not found\n"


async def test_missing_directory_is_a_sandbox_error(tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="gone"):
        await sandbox.run(plan(tmp_path, "true", cwd=tmp_path / "gone"), backend=FLOOR)


async def test_output_capped_and_spilled(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    script = "import sys\nfor n in range(300_000): print(n)"
    seen = 0

    def count(data: bytes) -> None:
        nonlocal seen
        seen += len(data)

    done = await sandbox.run(
        plan(tmp_path, PYTHON, "-c", script, limits=Limits(output_bytes=1000)),
        backend=FLOOR,
        spill=spill,
        on_output=count,
    )
    whole = spill.read_bytes()
    assert whole == "".join(f"{n}\n" for n in range(300_000)).encode()
    assert done.stdout.total == seen == len(whole)
    assert done.stdout.head == whole[:500]
    assert done.stdout.tail == whole[-500:]
    assert done.stdout.omitted == len(whole) - 1000
    assert f"{len(whole) - 1000} bytes omitted" in done.stdout.text()


async def test_sink_that_fails_ends_the_command(tmp_path: Path) -> None:
    def refuse(data: bytes) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        await sandbox.run(
            plan(tmp_path, "/bin/sh", "-c", "echo $$ > pid; echo x; sleep 100"),
            backend=FLOOR,
            on_output=refuse,
        )
    assert not alive(int((tmp_path / "pid").read_text()))


async def test_background_child_does_not_hold_the_call(tmp_path: Path) -> None:
    done = await shell(tmp_path, "sleep 100 & echo $! > pid; echo done")
    assert done.seconds < 50
    assert done.stdout.text() == "done\n"
    assert not alive(int((tmp_path / "pid").read_text()))


DOUBLE_FORK = """
import os, time, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        open("pid", "w").write(str(os.getpid()))
        time.sleep(100)
    os._exit(0)
while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)
print("forked", flush=True)
if sys.argv[1] == "stay": time.sleep(100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_double_forked_child_ends_with_the_command(tmp_path: Path) -> None:
    done = await sandbox.run(plan(tmp_path, PYTHON, "-c", DOUBLE_FORK, "go"), backend=FLOOR)
    assert done.exit_code == 0
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_cancellation_ends_the_whole_tree(tmp_path: Path) -> None:
    started = asyncio.Event()
    running = asyncio.create_task(
        sandbox.run(
            plan(tmp_path, PYTHON, "-c", DOUBLE_FORK, "stay"),
            backend=FLOOR,
            on_output=lambda data: started.set(),
        )
    )
    await asyncio.wait_for(started.wait(), 30)
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not alive(pid)


async def test_wall_limit(tmp_path: Path) -> None:
    script = "trap '' TERM INT HUP; echo begun; sleep 100 & sleep 100"
    done = await shell(tmp_path, script, limits=Limits(wall_seconds=0.5))
    assert (done.cause, done.exit_code, done.signal) == ("wall", None, 9)
    assert done.stdout.text() == "begun\n"


async def test_cpu_limit_of_one_process(tmp_path: Path) -> None:
    done = await shell(tmp_path, "while :; do :; done", limits=Limits(cpu_seconds=1))
    assert (done.cause, done.exit_code) == ("cpu", None)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_memory_limit(tmp_path: Path) -> None:
    script = "x = b'x' * 200_000_000\nimport time; time.sleep(100)"
    done = await sandbox.run(
        plan(tmp_path, PYTHON, "-c", script, limits=Limits(memory_bytes=100_000_000)),
        backend=FLOOR,
    )
    assert done.cause == "memory"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_process_limit(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait"
    done = await shell(tmp_path, script, limits=Limits(processes=4))
    assert done.cause == "pids"


async def test_file_size_limit(tmp_path: Path) -> None:
    script = "exec head -c 3000000 /dev/zero > big"
    done = await shell(tmp_path, script, limits=Limits(file_bytes=1_000_000))
    assert (tmp_path / "big").stat().st_size == 1_000_000
    assert done.cause == "disk"


async def test_required_property_refuses_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="does not enforce fs_write, net_deny"):
        await shell(tmp_path, "touch ran", require=frozenset({"fs_write", "net_deny", "env"}))
    assert not (tmp_path / "ran").exists()


async def test_unknown_backend(tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="portable-floor"):
        await sandbox.run(plan(tmp_path, "true"), backend="tin-foil")


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    await shell(tmp_path, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await shell(tmp_path, "true", merge_streams=False, stdin=b"x")
    assert len(os.listdir("/proc/self/fd")) == before
