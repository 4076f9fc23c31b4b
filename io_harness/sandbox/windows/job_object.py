"""`windows-job-object`: limits and a sure end for the whole tree, without isolation of files.

Run on Wine, which ends jobs and keeps account of them but enforces neither memory nor CPU time; not
run on Windows yet.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..backend import Exit, Running, Stdio
from ..child import Child, Popen
from ..doors import LoopbackDoor
from ..errors import SandboxError
from ..floor import NotFound, find_program
from ..isolation import Level, Property
from ..plan import Plan
from ..supervisor import SIGXCPU
from . import kernel
from .structures import limits_of

ERROR_NOT_ENOUGH_QUOTA = 1816
"""Everybody's exit code when a job has used up its CPU time."""
CREATE_SUSPENDED = 0x4
CREATE_NEW_PROCESS_GROUP = 0x200
CREATE_NO_WINDOW = 0x8000000

BEST: Mapping[Property, Level] = {
    "fs_write": "none",
    "fs_read": "none",
    "proc_hidden": "none",
    "net_deny": "none",
    "egress_allowlist": "advisory",
    "privesc": "none",
    "syscalls": "none",
    "memory": "enforced",
    "pids": "enforced",
    "cpu": "enforced",
    "wall": "enforced",
    "output": "enforced",
    "disk": "none",
    "kill_tree": "enforced",
    "env": "partial",
}


class JobObject:
    """The backend."""

    name = "windows-job-object"
    best = BEST

    def identity(self) -> str:
        return sys.version

    def objection(self, plan: Plan | None = None) -> str | None:
        if sys.platform != "win32":
            return "it is Windows'"
        if plan is not None and plan.mode == "overlay":
            return "it has no overlay mode"
        return None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        try:
            program = find_program(plan)
        except FileNotFoundError as error:
            return NotFound(stdio, error)
        try:
            job = kernel.create_job(limits_of(plan.limits))
        except OSError as error:
            raise SandboxError(f"{self.name}: {error}") from error
        door = LoopbackDoor.of(plan)
        env = {**plan.env, **(door.variables if door else {})}

        def spawn() -> Popen:
            return subprocess.Popen(
                [program, *plan.argv[1:]],
                cwd=plan.cwd,
                env=env,
                stdin=stdio.stdin,
                stdout=stdio.stdout,
                stderr=stdio.stderr,
                creationflags=CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW,
            )

        def prepare(popen: Popen) -> None:
            """Between the start and the first instruction: nothing of the tree is outside."""
            process = int(vars(popen)["_handle"])
            kernel.assign(job, process)
            kernel.resume(process)

        try:
            child = await Child.start(spawn, "sandbox-job", prepare)
        except BaseException as error:
            kernel.close(job)
            if door:
                await door.close()
            if isinstance(error, OSError):
                raise SandboxError(f"{self.name} could not be set up: {error}") from error
            raise
        return _JobRun(child, job, plan, door)


class _JobRun(Running):
    def __init__(self, child: Child, job: int, plan: Plan, door: LoopbackDoor | None) -> None:
        self._child = child
        self._job = job
        self._plan = plan
        self._door = door

    async def wait(self) -> Exit:
        code = await self._child.wait() & 0xFFFFFFFF
        used = kernel.accounting(self._job).user_seconds
        if code == ERROR_NOT_ENOUGH_QUOTA and used >= self._plan.limits.cpu_seconds:
            return Exit(None, SIGXCPU)
        return Exit(code, None)

    def members(self) -> Sequence[int]:
        """None: the job itself holds the limits."""
        return ()

    def kill(self) -> None:
        kernel.terminate(self._job, 1)

    async def close(self) -> None:
        try:
            self.kill()
            if not self._child.ended:
                await self._child.wait()
        finally:
            kernel.close(self._job)
            if self._door:
                await self._door.close()
