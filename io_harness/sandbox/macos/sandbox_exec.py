"""`macos-sandbox-exec`: a profile of macOS' own sandbox around the floor's process.

Written from documentation and tested by a recorder in the program's place; not run on macOS yet.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..backend import Exit, Running, Stdio
from ..floor import Floor
from ..isolation import Level, Property
from ..leased import leased_directory
from ..plan import Plan
from .profile import render

PROGRAM = Path("/usr/bin/sandbox-exec")

BEST: Mapping[Property, Level] = {
    "fs_write": "enforced",
    "fs_read": "enforced",
    "proc_hidden": "none",
    "net_deny": "enforced",
    "egress_allowlist": "enforced",
    "privesc": "partial",
    "syscalls": "none",
    "memory": "none",
    "pids": "none",
    "cpu": "partial",
    "wall": "enforced",
    "output": "enforced",
    "disk": "partial",
    "kill_tree": "partial",
    "env": "enforced",
}


class SandboxExec:
    """The backend."""

    name = "macos-sandbox-exec"
    best = BEST

    def identity(self) -> str:
        return str(PROGRAM)

    def objection(self, plan: Plan | None = None) -> str | None:
        if sys.platform != "darwin":
            return "it is macOS'"
        if not PROGRAM.exists():
            return f"{PROGRAM} is missing"
        return plan_objection(plan) if plan is not None else None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        with contextlib.ExitStack() as held:
            private = held.enter_context(leased_directory("tmp"))
            if "TMPDIR" in plan.env:
                plan = replace(plan, env={**plan.env, "TMPDIR": str(private)})
            running = await Floor().start_wrapped(
                plan, stdio, lambda port: wrapper(plan, private, port)
            )
            return _Cleaning(running, held.pop_all())


def plan_objection(plan: Plan) -> str | None:
    if plan.mode == "overlay":
        return "it has no overlay mode"
    return None


def wrapper(plan: Plan, private_tmp: Path, door_port: int | None) -> list[str]:
    """The words before the command's."""
    profile, parameters = render(plan, private_tmp, door_port)
    words = [str(PROGRAM), "-p", profile]
    for name, value in parameters.items():
        words += ["-D", f"{name}={value}"]
    return words


class _Cleaning(Running):
    """A run that removes its temporary directory in the end."""

    def __init__(self, running: Running, held: contextlib.ExitStack) -> None:
        self._running = running
        self._held = held

    async def wait(self) -> Exit:
        return await self._running.wait()

    def members(self) -> Sequence[int]:
        return self._running.members()

    def kill(self) -> None:
        self._running.kill()

    async def close(self) -> None:
        with self._held:
            await self._running.close()
