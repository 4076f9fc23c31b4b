"""`linux-landlock`: Landlock and seccomp, for ordinary users of hosts without user namespaces.

It hides no processes and can't protect a path inside a writable place, so it refuses plans that
ask for either. What it needs is in the kernel from 6.12 on (Landlock ABI 6).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .. import process_tree
from ..backend import Running, Stdio
from ..child import Child
from ..errors import SandboxError
from ..isolation import Level, Property
from ..leased import leased_directory
from ..plan import NetHost, NetNone, NetProxy, Plan
from . import seccomp
from .bubblewrap import spawn
from .bubblewrap_run import BubblewrapRun, Launch, Wiring
from .etc import ENTRIES
from .namespaces import launcher_command
from .render import init_argv
from .tools import tool_roots
from .view import DEVICE_NAMES, MERGED_ROOTS, SYSTEM_ROOTS, is_inside

BEST: Mapping[Property, Level] = {
    "fs_write": "partial",  # Modes, times and attributes of files outside can be changed.
    "fs_read": "enforced",
    "proc_hidden": "none",
    "net_deny": "enforced",
    "egress_allowlist": "none",
    "privesc": "enforced",
    "syscalls": "enforced",
    "memory": "partial",
    "pids": "partial",
    "cpu": "partial",  # Time of children that nobody waits for is lost.
    "wall": "enforced",
    "output": "enforced",
    "disk": "partial",
    "kill_tree": "partial",
    "env": "enforced",
}

NEEDED_ABI = 6
"""With TCP rules, device ioctls, and signals and abstract sockets kept within the domain."""
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1, 2, 4, 8, 1 << 14, 1 << 15
ALL_FILES = (1 << 16) - 1
READING = EXECUTE | READ_FILE | READ_DIR
WRITING = ALL_FILES & ~IOCTL_DEV & ~(1 << 6) & ~(1 << 11)
"""All but device ioctls and the making of character and block devices."""
FILE_ONLY = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule on a file, and not a directory, may have."""
SCOPED_ABSTRACT_SOCKETS, SCOPED_SIGNALS = 1, 2
RULESET_BYTES = 24


@functools.cache
def abi() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    version_query = 1
    found: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), version_query)
    return max(found, 0)


class Landlock:
    """The backend."""

    name = "linux-landlock"
    best = BEST

    def identity(self) -> str:
        return f"{abi()} {sys.executable} {sys.version}"

    def objection(self, plan: Plan | None = None) -> str | None:
        if seccomp.architecture() is None:
            return "its seccomp filter is written for x86_64 and aarch64 only"
        if abi() < NEEDED_ABI:
            return f"the kernel's Landlock is of ABI {abi()}, and {NEEDED_ABI} is needed"
        if os.geteuid() == 0:
            return "as root it would run commands as the host's root"
        return _objection_to(plan) if plan is not None else None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        arch = seccomp.architecture()
        objection = self.objection(plan)
        if arch is None or objection is not None:
            raise SandboxError(f"{self.name}: {objection}")
        with contextlib.ExitStack() as held:
            private = str(held.enter_context(leased_directory("tmp")))
            env = {**plan.env, "TMPDIR": private} if "TMPDIR" in plan.env else dict(plan.env)
            wiring = held.enter_context(contextlib.closing(Wiring()))
            network = not isinstance(plan.net, NetNone)
            program = seccomp.program(arch, unix_sockets=plan.unix_sockets, network=network)
            config = {
                "parent": os.getpid(),
                "status": wiring.status_write,
                "block": wiring.block_read,
                "namespaces": None,
                "landlock": {
                    "files": ALL_FILES,
                    "scoped": SCOPED_ABSTRACT_SOCKETS | SCOPED_SIGNALS,
                    "size": RULESET_BYTES,
                    "paths": list(_rules(plan, Path(private))),
                },
                "seccomp": program.hex(),
                "cwd": str(plan.cwd),
                "argv": init_argv(plan.argv, env),
                "env": env,
            }
            command = launcher_command(Path(sys.base_prefix), wiring, config)
            launch = held.enter_context(
                contextlib.closing(Launch(wiring, plan.limits, (), own_process_count=False))
            )
            start = functools.partial(spawn, command, {}, stdio, wiring.passed, None)
            try:
                child = await Child.start(start, "sandbox-landlock", launch.prepare)
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxError(f"{self.name} could not be set up: {error}") from error
            return _LandlockRun(child, launch, (), held.pop_all(), self.name)


def _objection_to(plan: Plan) -> str | None:
    if plan.mode in ("overlay", "full"):
        return f"it has no {plan.mode} mode"
    if isinstance(plan.net, NetProxy):
        return "it can't hold a command to a proxy"
    writable = [*plan.writable_roots, *([plan.workspace] if plan.mode != "read_only" else [])]
    if any(is_inside(path, root) for path in plan.protected for root in writable):
        return "it can't protect a path inside a writable place"
    shown = [*writable, *plan.read_only_roots, plan.workspace]
    if any(is_inside(path, root) for path in plan.hidden for root in shown):
        return "it can't hide a path inside a visible place"
    return None


def _rules(plan: Plan, private: Path) -> Iterator[tuple[str, int]]:
    """Paths and what may be done beneath them."""
    readable = [*map(Path, (*SYSTEM_ROOTS, *MERGED_ROOTS)), *tool_roots(plan.env)]
    readable += (Path("/etc", name) for name in (*ENTRIES, "passwd", "group", "hosts"))
    readable += (Path("/proc"), *plan.read_only_roots)
    if isinstance(plan.net, NetHost):
        readable.append(Path("/etc/resolv.conf"))
    writable = [private, *plan.writable_roots]
    (readable if plan.mode == "read_only" else writable).append(plan.workspace)
    for path in readable:
        yield from _rule(path, READING)
    for path in writable:
        yield from _rule(path, READING | WRITING)
    for name in DEVICE_NAMES:
        yield from _rule(Path("/dev", name), READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV)


def _rule(path: Path, access: int) -> Iterator[tuple[str, int]]:
    if path.exists():
        yield str(path), access if path.is_dir() else access & FILE_ONLY


class _LandlockRun(BubblewrapRun):
    """There is no namespace whose end ends all: the launcher collects orphans, and is walked."""

    def members(self) -> Sequence[int]:
        return process_tree.tree(self._child.pid)[1:]

    def kill(self) -> None:
        """What is killed while it forks leaves its child to the launcher, which is looked at
        again."""
        for _ in range(100):
            members = [pid for pid in self.members() if not process_tree.is_zombie(pid)]
            if not members:
                return
            process_tree.kill_all(members)

    async def close(self) -> None:
        self.kill()
        await super().close()
