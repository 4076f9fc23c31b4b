"""What the sandbox costs, as ratios within one run, and whether it leaves anything behind.

    python benchmarks/sandbox.py launch [--rounds 100] [--json]
    python benchmarks/sandbox.py memory [--json]
    python benchmarks/sandbox.py leaks [--runs 1000]    some cancelled, some with a killed worker

`launch` times `true` in each backend against a bare subprocess, `unshare` and plain bubblewrap,
round by round in turn, so that the machine's mood hits all alike. `memory` adds up the proportional
set size of all processes that a command has besides itself while it sleeps. `leaks` ends with 1 when
processes, mounts, descriptors, threads, temporary files or cgroups are more afterwards than before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

from io_harness import sandbox
from io_harness.sandbox import Door, NetProxy, Plan, process_tree, protected_in

MARK_NAME = "SANDBOX_BENCHMARK"
MARK = f"{MARK_NAME}={os.environ.get(MARK_NAME) or secrets.token_hex(16)}"
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/home/nobody", **dict([MARK.split("=")])}
Variant = Callable[[], Coroutine[None, None, None]]


async def _serve(listener: socket.socket) -> None:
    with listener:
        await asyncio.Event().wait()


def plain(*argv: str) -> Variant:
    async def run() -> None:
        # Blocking on purpose: the bare call is the measure of all.
        subprocess.run(argv, env=ENV, check=True, stdout=subprocess.PIPE)  # noqa: ASYNC221

    return run


def held(backend: str, plan: Plan) -> Variant:
    async def run() -> None:
        done = await sandbox.run(plan, backend=backend)
        if not done.ok:
            raise SystemExit(f"{backend}: {done.cause} {done.exit_code}: {done.stdout.text()}")

    return run


def bubblewrap_words(workspace: Path) -> list[str]:
    """What a person would write: a curated root and all namespaces."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
    words += ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    return [*words, "--bind", str(workspace), str(workspace)]


def variants(workspace: Path, argv: tuple[str, ...] = ("/usr/bin/true",)) -> dict[str, Variant]:
    plan = Plan(
        argv=argv,
        cwd=workspace,
        workspace=workspace,
        env=ENV,
        protected=protected_in(workspace),
    )
    unguarded = Plan(argv=plan.argv, cwd=workspace, workspace=workspace, env=ENV)
    proxied = Plan(
        argv=plan.argv,
        cwd=workspace,
        workspace=workspace,
        env=ENV,
        net=NetProxy(doors=(Door(serve=_serve),), variables=lambda port, isolated: {}),
    )
    found: dict[str, Variant] = {"bare": plain(*argv)}
    if shutil.which("unshare"):
        found["unshare"] = plain("unshare", "--user", "--net", "--pid", "--fork", *argv)
    if shutil.which("bwrap"):
        found["plain bwrap"] = plain(*bubblewrap_words(workspace), *argv)
    for name in sandbox.backend_names():
        if sandbox.objection(name) is None:
            found[name] = held(name, unguarded)
    if sandbox.objection("linux-bubblewrap") is None:
        found["linux-bubblewrap, listener"] = held("linux-bubblewrap", proxied)
        found["linux-bubblewrap, protected"] = held("linux-bubblewrap", plan)
    return found


async def launch(rounds: int) -> dict[str, tuple[float, float]]:
    """Median and fastest milliseconds of each variant. Where other work keeps the processors busy,
    the fastest says more."""
    with tempfile.TemporaryDirectory() as directory:
        workspace = Path(directory)
        (workspace / ".git" / "hooks").mkdir(parents=True)
        (workspace / ".git" / "config").touch()
        chosen = variants(workspace)
        times: dict[str, list[float]] = {name: [] for name in chosen}
        for turn in range(rounds + 3):
            for name, variant in chosen.items():
                begun = time.perf_counter()
                await variant()
                if turn >= 3:  # The first ones probe and fill caches.
                    times[name].append(time.perf_counter() - begun)
    return {
        name: (statistics.median(taken) * 1000, min(taken) * 1000) for name, taken in times.items()
    }


def report(found: dict[str, tuple[float, float]], as_json: bool) -> None:
    ratios = {
        name: [
            value / measure
            for base in ("bare", "plain bwrap")
            if base in found
            for value, measure in zip(values, found[base], strict=True)
        ]
        for name, values in found.items()
    }
    if as_json:
        print(json.dumps(ratios))
        return
    print(f"{'':30}{'median, fastest ms':>20}{'x bare':>16}{'x plain bwrap':>16}")
    for name, values in found.items():
        shown = f"{values[0]:11.2f}{values[1]:9.2f}"
        print(f"{name:30}{shown}" + "".join(f"{ratio:8.2f}" for ratio in ratios[name]))


SLEEP = "3.125"


async def memory() -> dict[str, float]:
    """MiB of what each variant adds to a sleeping command; `per worker` is what all commands share."""
    added: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        for run in variants(Path(directory)).values():
            await run()
        shared = process_tree.children(os.getpid())
        added["per worker"] = process_tree.proportional_bytes(_with_descendants(shared)) / 2**20
        for name, run in variants(Path(directory), ("/usr/bin/sleep", SLEEP)).items():
            running = asyncio.create_task(asyncio.to_thread(asyncio.run, run()))
            pids = await _until_asleep(shared)
            others = [pid for pid in pids if not _sleeps(pid)]
            added[name] = process_tree.proportional_bytes(others) / 2**20
            await running
    return added


async def _until_asleep(shared: list[int]) -> list[int]:
    """The processes of a run whose command sleeps."""
    while True:
        started = set(process_tree.children(os.getpid())) - set(shared)
        pids = _with_descendants(sorted(started))
        if any(map(_sleeps, pids)):
            return pids
        await asyncio.sleep(0.05)


def _with_descendants(pids: list[int]) -> list[int]:
    return [each for pid in pids for each in process_tree.tree(pid)]


def _sleeps(pid: int) -> bool:
    return _argv(pid)[:1] == ["/usr/bin/sleep"]


def _argv(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def census() -> dict[str, int]:
    """What there is of each kind of thing that a run could leave behind, and that is ours."""
    return {
        "processes": _children() + _marked(),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
        "cgroups": sum(1 for _ in Path("/sys/fs/cgroup").rglob("io-harness*")),
    }


def _children() -> int:
    tasks = Path("/proc/self/task")
    return sum(len((task / "children").read_text().split()) for task in tasks.iterdir())


def _marked() -> int:
    """Processes with a sandbox's environment, whoever is their parent. A namespace lives as long as
    a process, a mount or a descriptor that holds it, and each of these is counted."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += MARK.encode() in path.read_bytes()
    return found


async def cancelled(run: Variant) -> None:
    """Cancelled at some moment: before it starts, in its start, in its end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(secrets.randbelow(20) / 1000):
            await run()


async def elsewhere(name: str, workspace: Path, *, kill: bool) -> None:
    """In a process of its own, which ends, or is killed at some moment."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "worker", "--variant", name, "--workspace", str(workspace),
        env={**os.environ, "TMPDIR": tempfile.gettempdir(), **dict([MARK.split("=")])},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert worker.stdout is not None
    await worker.stdout.readline()
    if kill:
        await asyncio.sleep(secrets.randbelow(20) / 1000)
        worker.kill()
    await worker.wait()


async def worker(name: str, workspace: Path) -> None:
    """Runs one variant a few times, if it is not killed meanwhile."""
    run = variants(workspace)[name]
    await run()
    print("begun", flush=True)
    for _ in range(3):
        await run()


async def leaks(runs: int) -> bool:
    """Whether `runs` runs of every kind left nothing behind. One in 5 is cancelled; one in 50 goes on
    in a process that is killed. What those leave on the disk the next process removes."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o755)
        tempfile.tempdir = temporary  # So that only what is ours is counted.
        workspace = Path(directory)
        chosen = {
            name: run for name, run in variants(workspace).items() if name.startswith("linux-")
        }
        for run in chosen.values():
            await run()  # What is kept on purpose, once per process, is there from here on.
        await asyncio.sleep(1)
        before = census()
        names = list(chosen)
        for turn in range(runs):
            name = names[turn % len(names)]
            if turn % 50 == 7:
                await elsewhere(name, workspace, kill=True)
            elif turn % 5 == 3:
                await cancelled(chosen[name])
            else:
                await chosen[name]()
        for name in names:
            await elsewhere(name, workspace, kill=False)
        await asyncio.sleep(1)
        after = census()
        left_files = sorted(path.name for path in workspace.iterdir())
        tempfile.tempdir = None
    print(f"{'after ' + str(runs) + ' runs':24}{'before':>8}{'after':>8}")
    for name, count in before.items():
        print(f"{name:24}{count:8}{after[name]:8}")
    print(f"files left in the workspace: {left_files or 'none'}")
    return not left_files and all(after[name] <= count for name, count in before.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("launch", "memory", "leaks", "worker"))
    parser.add_argument("--variant", help="of `worker`, which `leaks` starts and kills")
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.what == "launch":
        report(asyncio.run(launch(given.rounds)), given.json)
    elif given.what == "memory":
        found = asyncio.run(memory())
        if given.json:
            print(json.dumps(found))
        else:
            print("\n".join(f"{name:30}{mib:8.2f} MiB" for name, mib in found.items()))
    elif given.what == "worker":
        asyncio.run(worker(given.variant, given.workspace))
    elif not asyncio.run(leaks(given.runs)):
        sys.exit(1)


if __name__ == "__main__":
    main()
