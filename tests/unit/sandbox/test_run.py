"""What every backend holds: limits, output, environment and a sure end."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.sandbox import Completed, Limits, Plan
from tests.processes import lives

FLOOR = "portable-floor"
PYTHON = sys.executable


@pytest.fixture(params=sandbox.backend_names())
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend that works on this machine."""
    name = str(request.param)
    reason = sandbox.objection(name)
    if reason is not None:
        pytest.skip(reason)
    return name


def plan(directory: Path, *argv: str, **fields: object) -> Plan:
    given: dict[str, object] = {
        "argv": argv,
        "cwd": directory,
        "workspace": directory,
        "env": {"PATH": os.environ["PATH"]},
    }
    return Plan(**(given | fields))  # type: ignore[arg-type]


async def shell(backend: str, directory: Path, script: str, **fields: object) -> Completed:
    return await sandbox.run(plan(directory, "/bin/sh", "-c", script, **fields), backend=backend)


def fresh_mark() -> str:
    """A number of seconds, above a day, that nobody else sleeps."""
    return str(100_000 + secrets.randbelow(10**9))


async def test_exit_code_and_output(backend: str, tmp_path: Path) -> None:
    done = await shell(backend, tmp_path, "echo out; echo err >&2; exit 3")
    assert (done.cause, done.exit_code, done.signal) == ("exited", 3, None)
    assert done.stdout.text() == "out\nerr\n"
    assert done.stderr.total == 0


async def test_streams_apart(backend: str, tmp_path: Path) -> None:
    done = await shell(backend, tmp_path, "echo out; echo err >&2", merge_streams=False)
    assert (done.stdout.text(), done.stderr.text()) == ("out\n", "err\n")


async def test_signal(backend: str, tmp_path: Path) -> None:
    done = await shell(backend, tmp_path, "kill -TERM $$")
    assert (done.cause, done.exit_code, done.signal) == ("signalled", None, 15)


async def test_environment_exactly_as_given(backend: str, tmp_path: Path) -> None:
    env = {"ONE": "1", "PATH": "/usr/bin:/bin"}
    done = await sandbox.run(plan(tmp_path, "env", env=env), backend=backend)
    assert sorted(done.stdout.text().split()) == ["ONE=1", "PATH=/usr/bin:/bin"]


async def test_stdin_closed_or_fed(backend: str, tmp_path: Path) -> None:
    assert (await shell(backend, tmp_path, "cat")).stdout.total == 0
    big = os.urandom(3_000_000)
    done = await shell(backend, tmp_path, "cat | wc -c", stdin=big)
    assert done.stdout.text().strip() == str(len(big))
    assert (await shell(backend, tmp_path, "exit 0", stdin=big)).exit_code == 0


async def test_missing_program_is_the_commands_failure(backend: str, tmp_path: Path) -> None:
    done = await sandbox.run(plan(tmp_path, "no-such-program"), backend=backend)
    assert (done.cause, done.exit_code) == ("exited", 127)
    assert "no-such-program" in done.stdout.text()
    assert "not found" in done.stdout.text()


async def test_missing_directory_is_a_sandbox_error(backend: str, tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="gone"):
        await sandbox.run(plan(tmp_path, "true", cwd=tmp_path / "gone"), backend=backend)


async def test_output_capped_and_spilled(backend: str, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    script = "import sys\nfor n in range(300_000): print(n)"
    seen = 0

    def count(data: bytes) -> None:
        nonlocal seen
        seen += len(data)

    done = await sandbox.run(
        plan(tmp_path, PYTHON, "-c", script, limits=Limits(output_bytes=1000)),
        backend=backend,
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


async def test_sink_that_fails_ends_the_command(backend: str, tmp_path: Path) -> None:
    mark = fresh_mark()

    def refuse(data: bytes) -> None:
        assert lives(mark)
        raise RuntimeError("disk full")

    script = f"sleep {mark} & sleep 0.2; echo x; wait"
    with pytest.raises(RuntimeError, match="disk full"):
        await sandbox.run(
            plan(tmp_path, "/bin/sh", "-c", script), backend=backend, on_output=refuse
        )
    assert not lives(mark)


async def test_background_child_does_not_hold_the_call(backend: str, tmp_path: Path) -> None:
    mark = fresh_mark()
    done = await shell(backend, tmp_path, f"sleep {mark} & echo done")
    assert done.seconds < 50
    assert done.stdout.text() == "done\n"
    assert not lives(mark)


DOUBLE_FORK = """
import os, sys
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, b"x")
        for fd in (0, 1, 2, write): os.close(fd)
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
os.close(write)
os.read(read, 2)
print("forked", flush=True)
if sys.argv[2] == "stay": os.execvp("sleep", ["sleep", "100000"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_double_forked_child_ends_with_the_command(backend: str, tmp_path: Path) -> None:
    mark = fresh_mark()
    done = await sandbox.run(plan(tmp_path, PYTHON, "-c", DOUBLE_FORK, mark, "go"), backend=backend)
    assert (done.exit_code, done.stdout.text()) == (0, "forked\n")
    assert not lives(mark)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_cancellation_ends_the_whole_tree(backend: str, tmp_path: Path) -> None:
    mark = fresh_mark()
    started = asyncio.Event()
    running = asyncio.create_task(
        sandbox.run(
            plan(tmp_path, PYTHON, "-c", DOUBLE_FORK, mark, "stay"),
            backend=backend,
            on_output=lambda data: started.set(),
        )
    )
    await asyncio.wait_for(started.wait(), 30)
    assert lives(mark)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not lives(mark)


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
async def test_cancellation_while_it_starts(backend: str, tmp_path: Path, turns: int) -> None:
    mark = fresh_mark()
    running = asyncio.create_task(sandbox.run(plan(tmp_path, "sleep", mark), backend=backend))
    for _ in range(turns):
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for _ in range(100):
        if not lives(mark):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it lives on")


async def test_wall_limit(backend: str, tmp_path: Path) -> None:
    script = "trap '' TERM INT HUP; echo begun; sleep 100 & sleep 100"
    done = await shell(backend, tmp_path, script, limits=Limits(wall_seconds=0.5))
    assert (done.cause, done.exit_code, done.signal) == ("wall", None, 9)
    assert done.stdout.text() == "begun\n"


async def test_cpu_limit_of_one_process(backend: str, tmp_path: Path) -> None:
    done = await shell(backend, tmp_path, "while :; do :; done", limits=Limits(cpu_seconds=1))
    assert (done.cause, done.exit_code) == ("cpu", None)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_memory_limit(backend: str, tmp_path: Path) -> None:
    script = "x = b'x' * 200_000_000\nimport time; time.sleep(100)"
    done = await sandbox.run(
        plan(tmp_path, PYTHON, "-c", script, limits=Limits(memory_bytes=100_000_000)),
        backend=backend,
    )
    assert done.cause == "memory"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_process_limit(backend: str, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait"
    done = await shell(backend, tmp_path, script, limits=Limits(processes=4))
    refused = done.exit_code != 0 and "fork" in done.stdout.text()
    assert done.cause == "pids" or refused


async def test_file_size_limit(backend: str, tmp_path: Path) -> None:
    script = "exec head -c 3000000 /dev/zero > big"
    done = await shell(backend, tmp_path, script, limits=Limits(file_bytes=1_000_000))
    assert (tmp_path / "big").stat().st_size == 1_000_000
    assert done.cause == "disk"


async def test_required_property_refuses_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="does not enforce fs_write, net_deny"):
        await shell(
            FLOOR, tmp_path, "touch ran", require=frozenset({"fs_write", "net_deny", "env"})
        )
    assert not (tmp_path / "ran").exists()


async def test_unknown_backend(tmp_path: Path) -> None:
    with pytest.raises(sandbox.SandboxError, match="portable-floor"):
        await sandbox.run(plan(tmp_path, "true"), backend="tin-foil")


async def test_no_descriptor_is_left_open(backend: str, tmp_path: Path) -> None:
    await shell(backend, tmp_path, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await shell(backend, tmp_path, "true", merge_streams=False, stdin=b"x")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /dev/null's owner")
async def test_the_hosts_null_device_stays_the_hosts(backend: str, tmp_path: Path) -> None:
    before = os.stat(os.devnull)
    await shell(backend, tmp_path, "true")
    after = os.stat(os.devnull)
    assert (before.st_uid, before.st_gid, before.st_mode) == (
        after.st_uid,
        after.st_gid,
        after.st_mode,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' backends")
async def test_an_absent_hidden_path_is_not_made_on_the_host(backend: str, tmp_path: Path) -> None:
    if backend in ("linux-landlock", "portable-floor"):
        pytest.skip("hides nothing")
    (tmp_path / "secret").write_text("secret")
    names = ("secret", "absent")
    hidden = tuple(tmp_path / name for name in names)
    done = await shell(backend, tmp_path, "cat secret; echo end", hidden=hidden)
    assert done.stdout.text() == "end\n"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' backends")
async def test_nothing_of_an_overlay_stays(backend: str, tmp_path: Path) -> None:
    if backend in ("linux-landlock", "portable-floor"):
        with pytest.raises(sandbox.SandboxError, match=r"no overlay mode|can't discard"):
            await shell(backend, tmp_path, "true", mode="overlay")
        return
    (tmp_path / "kept").write_text("before")
    (tmp_path / "folder").mkdir()
    script = "echo after > kept; cat kept; rmdir folder; mkdir new .git; ls -A"
    done = await shell(backend, tmp_path, script, mode="overlay")
    assert done.stdout.text().split() == ["after", ".git", "kept", "new"]
    assert (tmp_path / "kept").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "kept"]
