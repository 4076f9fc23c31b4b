"""Abuse of resources, and ways to outlive the command or its supervisor: one run each.

Every abuse is first let go on the floor, or with a larger limit, where it succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.sandbox import Completed, Limits, Plan
from tests.processes import lives

MIB = 1024 * 1024
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux' limits and /proc")


@pytest.fixture(params=[n for n in sandbox.backend_names() if n.startswith("linux-")])
def backend(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if reason := sandbox.objection(name):
        pytest.skip(reason)
    return name


async def python(backend: str, directory: Path, script: str, **limits: float) -> Completed:
    plan = Plan(
        argv=(sys.executable, "-I", "-S", "-c", textwrap.dedent(script)),
        cwd=directory,
        workspace=directory,
        env={"PATH": os.defpath, "HOME": "/home/nobody"},
        limits=Limits(**({"wall_seconds": 60} | limits)),  # type: ignore[arg-type]
    )
    return await sandbox.run(plan, backend=backend)


async def dies(mark: str) -> bool:
    for _ in range(100):
        if not lives(mark):
            return True
        await asyncio.sleep(0.05)
    return False


THREADS = """
    import threading, time
    for n in range(30): threading.Thread(target=time.sleep, args=(0.5,)).start()
    print("all")
"""


async def test_threads(backend: str, tmp_path: Path) -> None:
    if backend == "linux-landlock":
        pytest.skip("counts processes, not threads")
    assert (await python(backend, tmp_path, THREADS, processes=60)).stdout.text() == "all\n"
    tight = await python(backend, tmp_path, THREADS, processes=10)
    assert "can't start new thread" in tight.stdout.text()


BOMB = """
    import os, time
    while True:
        try: os.fork()
        except OSError: time.sleep(0.1)
"""


async def test_fork_bomb(backend: str, tmp_path: Path) -> None:
    done = await python(backend, tmp_path, BOMB, processes=30, wall_seconds=2)
    assert done.cause in ("wall", "pids", "cpu")


MANY_SMALL = """
    import os, time
    for n in range(6):
        if os.fork() == 0:
            kept = bytearray(os.urandom(1000) * 30_000)
            time.sleep(30); os._exit(0)
    time.sleep({seconds})
    print("whole")
    os.killpg(0, 9)
"""


async def test_memory_of_many_processes_adds_up(backend: str, tmp_path: Path) -> None:
    roomy = await python(backend, tmp_path, MANY_SMALL.format(seconds=2))
    assert roomy.cause == "signalled"
    tight = await python(backend, tmp_path, MANY_SMALL.format(seconds=20), memory_bytes=100 * MIB)
    assert tight.cause == "memory"


UNMAPPED = """
    import os, time
    file = os.memfd_create("kept")
    for n in range(150): os.write(file, bytes(1024 * 1024))
    print("whole", flush=True)
    time.sleep({seconds})
"""


async def test_memory_files_that_nobody_maps_count(backend: str, tmp_path: Path) -> None:
    roomy = await python(backend, tmp_path, UNMAPPED.format(seconds=2))
    assert (roomy.cause, roomy.stdout.text()) == ("exited", "whole\n")
    tight = await python(backend, tmp_path, UNMAPPED.format(seconds=20), memory_bytes=100 * MIB)
    assert tight.cause == "memory"


MAPPED = """
    import mmap, os, time
    file = os.memfd_create("kept")
    os.ftruncate(file, 90 * 1024 * 1024)
    memory = mmap.mmap(file, 0)
    for n in range(0, len(memory), 4096): memory[n] = 1
    time.sleep(2)
    print("whole")
"""


async def test_mapped_memory_files_count_once(backend: str, tmp_path: Path) -> None:
    done = await python(backend, tmp_path, MAPPED, memory_bytes=130 * MIB)
    assert (done.cause, done.stdout.text()) == ("exited", "whole\n")


SHARED = """
    import os, time
    kept = bytearray(os.urandom(1000) * 60_000)
    for n in range(5):
        if os.fork() == 0: time.sleep(3); os._exit(0)
    for n in range(5): os.wait()
    print("whole")
"""


async def test_shared_pages_count_once(backend: str, tmp_path: Path) -> None:
    """Five children that share 60 MB, where 150 MiB are allowed."""
    done = await python(backend, tmp_path, SHARED, memory_bytes=150 * MIB)
    assert (done.cause, done.stdout.text()) == ("exited", "whole\n")


FILL = """
    import os, sys
    try:
        with open(sys.argv[1] if len(sys.argv) > 1 else {place!r}, "wb") as file:
            for n in range(8): file.write(bytes(1024 * 1024))
        print("filled")
    except OSError as error: print(error.strerror)
"""


@pytest.mark.parametrize("place", ["/tmp/x", "/dev/shm/x", "/home/nobody/x"])
async def test_private_places_have_a_size(backend: str, tmp_path: Path, place: str) -> None:
    if backend == "linux-landlock":
        pytest.skip("has no private places there")
    script = FILL.format(place=place)
    assert (await python(backend, tmp_path, script)).stdout.text() == "filled\n"
    tight = await python(backend, tmp_path, script, tmp_bytes=4 * MIB)
    assert tight.stdout.text() == "No space left on device\n"


DESCRIPTORS = """
    import os
    try:
        kept = [os.open("/dev/null", os.O_RDONLY) for n in range(100)]
        print("opened")
    except OSError as error: print(error.strerror)
"""


async def test_descriptors(backend: str, tmp_path: Path) -> None:
    assert (await python(backend, tmp_path, DESCRIPTORS)).stdout.text() == "opened\n"
    tight = await python(backend, tmp_path, DESCRIPTORS, open_files=50)
    assert tight.stdout.text() == "Too many open files\n"


BURN = """
    import os
    for n in range(3): os.fork()
    while True: pass
"""


async def test_cpu_of_the_tree_adds_up(backend: str, tmp_path: Path) -> None:
    """Eight processes, none of which alone reaches the limit before the wall does."""
    done = await python(backend, tmp_path, BURN, cpu_seconds=1, wall_seconds=60)
    assert done.cause == "cpu"
    assert done.seconds < 60


async def test_endless_output(backend: str, tmp_path: Path) -> None:
    script = "import os\nwhile True: os.write(1, bytes(65536))"
    done = await python(backend, tmp_path, script, wall_seconds=1, output_bytes=10_000)
    assert done.cause == "wall"
    assert len(done.stdout.head) + len(done.stdout.tail) == 10_000
    assert done.stdout.total > MIB


async def test_no_core_is_dumped(backend: str, tmp_path: Path) -> None:
    done = await python(backend, tmp_path, "import os; os.abort()")
    assert (done.cause, done.signal) == ("signalled", signal.SIGABRT)
    assert [path.name for path in tmp_path.iterdir()] == []


SURVIVE = """
    import os, signal, sys, time
    for number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)
    {how}
    print("begun", flush=True)
    time.sleep(1 if {leave} else 1000)
"""
WAYS = {
    "ignored signals": "pid = os.fork()\n    if pid == 0: os.execvp('sleep', ['sleep', '{mark}'])",
    "own session": (
        "if os.fork() == 0:\n        os.setsid(); os.execvp('sleep', ['sleep', '{mark}'])"
    ),
    "forked twice": (
        "if os.fork() == 0:\n        os.setsid()\n"
        "        if os.fork() == 0: os.execvp('sleep', ['sleep', '{mark}'])\n        os._exit(0)"
    ),
    "stopped": (
        "pid = os.fork()\n    if pid == 0: os.execvp('sleep', ['sleep', '{mark}'])\n"
        "    time.sleep(0.3); os.kill(pid, signal.SIGSTOP)"
    ),
    "keeps the pipe": (
        "if os.fork() == 0:\n        os.setsid()\n"
        "        os.execvp('sh', ['sh', '-c', 'trap \"\" TERM; sleep {mark}; :'])"
    ),
}


@pytest.mark.parametrize("leave", [True, False], ids=["exits", "is stopped"])
async def test_nothing_survives(backend: str, tmp_path: Path, leave: bool) -> None:
    async def attempt(how: str) -> None:
        mark = str(100_000 + secrets.randbelow(10**9))
        script = SURVIVE.format(how=how.format(mark=mark), leave=leave)
        done = await python(backend, tmp_path, script, wall_seconds=60 if leave else 2)
        assert done.stdout.text() == "begun\n"
        assert done.cause == ("exited" if leave else "wall")
        assert await dies(mark)

    await asyncio.gather(*map(attempt, WAYS.values()))


def test_the_ways_do_survive_a_plain_process() -> None:
    for how in WAYS.values():
        mark = str(100_000 + secrets.randbelow(10**9))
        script = textwrap.dedent(SURVIVE.format(how=how.format(mark=mark), leave=True))
        subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, check=True)
        assert lives(mark)
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if mark.encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


WORKER = """
import asyncio, sys
from pathlib import Path
from io_harness import sandbox
here = Path(sys.argv[2])
plan = sandbox.Plan(argv=("sh", "-c", "echo begun; " + sys.argv[3]), cwd=here,
    workspace=here, env={"PATH": "/usr/bin:/bin"},
    protected=sandbox.protected_in(here) if sys.argv[1] != "linux-landlock" else ())
asyncio.run(sandbox.run(plan, backend=sys.argv[1], on_output=lambda d: print("begun", flush=True)))
"""


@contextlib.contextmanager
def worker(
    backend: str, directory: Path, temporary: Path, script: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a command; it has begun."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, backend, str(directory), script],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield process


async def test_a_killed_worker_leaves_nothing(backend: str, tmp_path: Path) -> None:
    """No process; and what lies on the disk is gone with the next command."""
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    for path in (workspace, temporary):
        path.mkdir()
    mark = str(100_000 + secrets.randbelow(10**9))
    with worker(backend, workspace, temporary, f"setsid sleep {mark}") as killed:
        for _ in range(100):
            if lives(mark):
                break
            await asyncio.sleep(0.05)
        assert lives(mark)
        killed.kill()
    if backend == "linux-landlock":  # It has nothing that ends the whole tree by itself.
        await end(mark)
    assert await dies(mark)
    assert list(temporary.iterdir())
    with worker(backend, workspace, temporary, "true") as ending:
        assert ending.wait() == 0
    assert [*temporary.iterdir(), *workspace.iterdir()] == []


async def end(mark: str) -> None:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


DYING = '''
import asyncio, os, sys, time
from pathlib import Path
from io_harness import sandbox
from io_harness.sandbox.linux import bubblewrap_run
backend, here, mark, moment = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
asyncio.run(sandbox.probe(backend))
def die(*args, **named):
    os.kill(os.getpid(), 9)
def orphan_and_die():
    """The command is to begin when nothing is left that it could be tied to."""
    set_limits, prepare = bubblewrap_run.set_limits, bubblewrap_run.Launch.prepare
    def orphan(pid, *args, **named):
        set_limits(pid, *args, **named)
        parent = lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        wrapper = parent()
        os.kill(int(wrapper), 9)
        while Path(f"/proc/{pid}").exists() and parent() == wrapper:
            pass
    def prepare_and_die(*args):
        prepare(*args)
        deadline = time.monotonic() + 1
        while not (here / "ran").exists() and time.monotonic() < deadline:
            pass
        die()
    bubblewrap_run.set_limits, bubblewrap_run.Launch.prepare = orphan, prepare_and_die
command = "echo begun > ran; setsid sleep 100 &"
match moment:
    case "wrapper started": bubblewrap_run.Launch.prepare = die
    case "command's process made": bubblewrap_run.set_limits = die
    case "wrapper lost":
        orphan_and_die()
        command += " wait"
    case "never": pass
plan = sandbox.Plan(argv=("sh", "-c", command), cwd=here,
    workspace=here, env={"PATH": "/usr/bin:/bin", "MARK": mark})
asyncio.run(sandbox.run(plan, backend=backend))
'''


@pytest.mark.parametrize(
    "moment", ["wrapper started", "command's process made", "wrapper lost", "never"]
)
async def test_a_worker_killed_in_the_middle_of_a_start_leaves_nothing(
    backend: str, tmp_path: Path, moment: str
) -> None:
    """The command never begins unless it was told to, and what there is of it ends although it was
    not yet bound to the worker."""
    mark = secrets.token_hex(16)
    words = [sys.executable, "-c", DYING, backend, str(tmp_path), mark, moment]
    done = await asyncio.to_thread(subprocess.run, words, cwd=Path(__file__).parents[2])
    assert done.returncode == (0 if moment == "never" else -signal.SIGKILL)
    for _ in range(100):
        if not environs_with(mark):
            break
        await asyncio.sleep(0.05)
    assert environs_with(mark) == []
    if moment != "wrapper lost":
        assert (tmp_path / "ran").exists() == (moment == "never")


def environs_with(mark: str) -> list[Path]:
    found: list[Path] = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(path)
    return found


@pytest.mark.parametrize("seconds", [0, 0.001, 0.005, 0.02, 0.1])
async def test_a_cancelled_command_leaves_nothing(
    backend: str, tmp_path: Path, seconds: float
) -> None:
    """Cancelled in the middle of its start, or soon after."""
    await python(backend, tmp_path, "")  # What is kept once per process is there from here on.
    descriptors = len(os.listdir("/proc/self/fd"))
    mark = str(100_000 + secrets.randbelow(10**9))
    plan = Plan(
        argv=("sleep", mark),
        cwd=tmp_path,
        workspace=tmp_path,
        env={"PATH": os.defpath, "HOME": "/home/nobody"},
        protected=sandbox.protected_in(tmp_path) if backend != "linux-landlock" else (),
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await sandbox.run(plan, backend=backend)
    assert await dies(mark)
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_it_goes_on_when_the_thread_that_asked_has_ended(
    backend: str, tmp_path: Path
) -> None:
    """The parent-death signal is for the thread that starts a process, not for its process."""
    tasks: list[asyncio.Task[Completed]] = []
    loop = asyncio.get_running_loop()

    def ask() -> None:
        script = "import time; time.sleep(1.5); print('done')"
        started = python(backend, tmp_path, script)
        asyncio.run_coroutine_threadsafe(_keep(tasks, started), loop).result()

    thread = threading.Thread(target=ask)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert (await tasks[0]).stdout.text() == "done\n"


async def _keep(tasks: list[asyncio.Task[Completed]], started: object) -> None:
    tasks.append(asyncio.ensure_future(started))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "said"), [("false", "before the command began"), ("ls", "unrecognized option")]
)
async def test_a_failing_wrapper_is_not_the_commands_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    from io_harness.sandbox.linux import bubblewrap

    if reason := sandbox.objection("linux-bubblewrap"):
        pytest.skip(reason)
    await sandbox.probe("linux-bubblewrap")
    found = shutil.which(program, path=os.defpath)
    assert found
    monkeypatch.setattr(bubblewrap, "find_binary", lambda: Path(found))
    with pytest.raises(sandbox.SandboxError, match=said):
        await python("linux-bubblewrap", tmp_path, "print(1)")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts it as another user")
async def test_a_wrapper_that_only_root_can_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packaged one lies in the environment of whoever installed it."""
    from io_harness.sandbox.linux import bubblewrap

    if reason := sandbox.objection("linux-bubblewrap"):
        pytest.skip(reason)
    await sandbox.probe("linux-bubblewrap")
    system = bubblewrap.find_binary()
    assert system is not None
    private = tmp_path / "private" / "site" / "package" / "bin"
    private.mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    shutil.copy(system, private / "bwrap")
    monkeypatch.setattr(bubblewrap, "find_binary", lambda: private / "bwrap")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert (await python("linux-bubblewrap", workspace, "print(1)")).stdout.text() == "1\n"
