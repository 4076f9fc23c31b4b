"""Finds out, by attacking it, what a backend really enforces here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import select
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from .backend import Backend
from .errors import SandboxError
from .isolation import PROPERTIES, Isolation, Level, Property
from .leased import leased_directory
from .plan import Door, Limits, NetNone, NetProxy, Plan
from .probe_store import ProbeStore
from .result import Completed
from .supervisor import supervise

MIB = 1024 * 1024
_found: dict[str, Isolation] = {}
_failed: dict[str, str] = {}
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = WeakKeyDictionary()


async def probe_backend(backend: Backend) -> Isolation:
    """The levels of a backend for this user, cached for as long as the host stays up and neither
    the user nor the backend's `identity` changes.

    Raises `SandboxError` when nothing can be run in it.
    """
    if backend.name in _found:
        return _found[backend.name]
    loop = asyncio.get_running_loop()
    async with _locks.setdefault(loop, {}).setdefault(backend.name, asyncio.Lock()):
        if backend.name in _failed:
            raise SandboxError(_failed[backend.name])
        if backend.name not in _found:
            store = ProbeStore.of(backend)
            isolation = store.load()
            if isolation is None:
                try:
                    isolation = await _probe(backend)
                except SandboxError as error:
                    _failed[backend.name] = str(error)
                    raise
                store.save(isolation)
            _found[backend.name] = isolation
        return _found[backend.name]


async def _probe(backend: Backend) -> Isolation:
    """A level is the backend's best where no attack went through, else `none`."""
    with leased_directory("probe") as directory:
        scene = _Scene(backend, directory)
        breaches: dict[str, list[str]] = {}
        parts = (_isolation, _memory, _processes, _cpu, _wall, _remains)
        played = await asyncio.gather(*(part(scene) for part in parts), return_exceptions=True)
        for found in played:
            if isinstance(found, BaseException):
                raise found
            for name, what in found.items():
                breaches.setdefault(name, []).extend(what)
    levels: dict[Property, Level] = {}
    notes: list[str] = []
    for name in PROPERTIES:
        best = backend.best[name]
        broken = list(breaches.get(name, [])) if best in ("enforced", "partial") else []
        if best == "enforced":
            broken += breaches.get(f"{name} of others", [])
        levels[name] = "none" if broken else best
        if broken:
            notes.append(f"{backend.name} does not hold {name}: {', '.join(broken)}")
    return Isolation(backend.name, levels, tuple(notes))


@dataclass(frozen=True)
class _Scene:
    """Where a probe plays."""

    backend: Backend
    directory: Path
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.defpath, "PROBE": "1"})

    def workspace(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir()
        return path

    async def python(self, name: str, script: str, *args: str, **fields: object) -> Completed:
        """Runs Python code in the backend."""
        workspace = self.workspace(name)
        given: dict[str, object] = {
            "argv": (sys.executable, "-I", "-S", "-c", script, *args),
            "cwd": workspace,
            "workspace": workspace,
            "env": self.env,
            "limits": Limits(wall_seconds=30),
        }
        plan = Plan(**(given | fields))  # type: ignore[arg-type]
        untested = Isolation(self.backend.name, dict(self.backend.best))
        return await supervise(plan, self.backend, untested, None, None)


Breaches = dict[str, list[str]]


async def _isolation(scene: _Scene) -> Breaches:
    """Files, processes, network, environment, privilege, system calls."""
    outside = scene.workspace("outside")
    outside.chmod(0o777)
    victim = outside / "victim"
    victim.write_text("untouched")
    victim.chmod(0o666)
    script = Path(__file__).with_name("attack.py").read_text()
    async with _bystanders() as (ports, bystander, reached):
        given: dict[str, object] = {"outside": str(outside), "bystander": bystander[::-1]}
        given |= {"ports": ports, "env": dict(scene.env), "door": 0}
        done = await scene.python("closed", script, json.dumps(given), net=NetNone())
        found = _report(done)
        if reached():
            found.setdefault("net_deny", []).append("a datagram reached the host")
        if scene.backend.best["egress_allowlist"] == "enforced":
            given |= {"door": Door(serve=_greet).port}
            net = NetProxy(doors=(Door(serve=_greet),), variables=lambda port, isolated: {})
            opened = await scene.python("opened", script, json.dumps(given), net=net)
            found["egress_allowlist"] = _report(opened).get("egress_allowlist", [])
    if victim.read_text() != "untouched" or {path.name for path in outside.iterdir()} != {"victim"}:
        found.setdefault("fs_write", []).append("a write reached the host")
    return found


def _report(done: Completed) -> Breaches:
    if done.cause != "exited" or done.exit_code != 0:
        said = done.stdout.text(1000).strip()
        raise SandboxError(f"its probe ended by {done.cause} {done.exit_code}: {said}")
    report: Breaches = json.loads(done.stdout.text().splitlines()[-1])
    return report


async def _greet(listener: socket.socket) -> None:
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    while True:
        peer, _ = await loop.sock_accept(listener)
        with peer:
            await loop.sock_sendall(peer, b"door\n")


@contextlib.asynccontextmanager
async def _bystanders() -> AsyncIterator[tuple[dict[str, int], str, Callable[[], bool]]]:
    """Listeners on the host's loopback and a process, for the attack to look for."""
    ports: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            with contextlib.suppress(OSError):  # A host without IPv6.
                listener.bind((host, 0))
                listener.listen()
                ports[host] = listener.getsockname()[1]
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        ports["udp"] = datagrams.getsockname()[1]
        mark = secrets.token_hex(16)
        # Ends with its standard input, so also when this process is killed.
        waiting = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()", mark]
        bystander = await asyncio.create_subprocess_exec(
            *waiting, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            yield ports, mark, lambda: bool(select.select([datagrams], [], [], 0)[0])
        finally:
            bystander.kill()
            await bystander.wait()


def _breach_unless(holds: bool, name: Property, what: str) -> Breaches:
    return {} if holds else {name: [what]}


async def _memory(scene: _Scene) -> Breaches:
    script = "kept = bytearray(b'x' * 200_000_000)\nimport time; time.sleep(20)"
    done = await scene.python("memory", script, limits=Limits(memory_bytes=100 * MIB))
    return _breach_unless(done.cause == "memory", "memory", "200 MB where 100 MiB are allowed")


async def _processes(scene: _Scene) -> Breaches:
    script = (
        "import os, time\n"
        "for n in range(20):\n"
        "    if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "time.sleep(20)"
    )
    if not hasattr(os, "fork"):
        return {}
    done = await scene.python("processes", script, limits=Limits(processes=10))
    held = done.cause == "pids" or (done.exit_code != 0 and "BlockingIOError" in done.stdout.text())
    return _breach_unless(held, "pids", "20 processes where 10 are allowed")


async def _cpu(scene: _Scene) -> Breaches:
    limits = Limits(cpu_seconds=1, wall_seconds=30)
    done = await scene.python("cpu", "while True: pass", limits=limits)
    return _breach_unless(done.cause == "cpu", "cpu", "more than the allowed CPU time")


async def _wall(scene: _Scene) -> Breaches:
    script = "import time; time.sleep(100)"
    done = await scene.python("wall", script, limits=Limits(wall_seconds=0.5))
    return _breach_unless(done.cause == "wall", "wall", "more than the allowed time")


async def _remains(scene: _Scene) -> Breaches:
    """Output, file size, and survivors."""
    script = Path(__file__).with_name("survive.py").read_text()
    mark = secrets.token_hex(16)
    limits = Limits(wall_seconds=30, output_bytes=1000, file_bytes=MIB)
    done = await scene.python("remains", script, mark, limits=limits)
    if done.exit_code != 0:
        raise SandboxError(f"its probe ended by {done.cause}: {done.stdout.tail[-500:]!r}")
    kept = len(done.stdout.head) + len(done.stdout.tail)
    found = _breach_unless(kept <= 1000 < done.stdout.total, "output", "unbounded output")
    size = (scene.directory / "remains" / "big").stat().st_size
    found |= _breach_unless(size <= MIB, "disk", "a file above the allowed size")
    found |= _breach_unless(not _lives(mark), "kill_tree", "a process that forked twice")
    return found


def _lives(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False
