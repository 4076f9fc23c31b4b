"""`portable-floor`: limits and a sure end, without isolation.

Holds time, output and environment everywhere, and processes and memory as well as polling can.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from . import process_tree
from .backend import Exit, Running, Stdio
from .child import Child
from .doors import LoopbackDoor
from .errors import SandboxError
from .isolation import Level, Property
from .plan import Limits, Plan

_MARK_ROOM = 1 << 19

BEST: Mapping[Property, Level] = {
    "fs_write": "none",
    "fs_read": "none",
    "proc_hidden": "none",
    "net_deny": "none",
    "egress_allowlist": "advisory",
    "privesc": "none",
    "syscalls": "none",
    "memory": "partial",
    "pids": "partial",
    "cpu": "partial",
    "wall": "enforced",
    "output": "enforced",
    "disk": "partial",
    "kill_tree": "partial",
    "env": "partial",
}


class Floor:
    """The backend."""

    name = "portable-floor"
    best = BEST

    def identity(self) -> str:
        return self.name

    def objection(self, plan: Plan | None = None) -> str | None:
        if plan is not None and plan.mode == "overlay":
            return "it has no file system view of its own, so it can't discard what is written"
        return None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        return await self.start_wrapped(plan, stdio, lambda port: ())

    async def start_wrapped(
        self, plan: Plan, stdio: Stdio, wrap: Callable[[int | None], Sequence[str]]
    ) -> Running:
        """Starts the command behind the words that `wrap` gives for the port of the plan's door."""
        mark = choose_mark()
        try:
            program = find_program(plan)
        except FileNotFoundError as error:
            return NotFound(stdio, error)

        door = LoopbackDoor.of(plan)
        env = {**plan.env, **(door.variables if door else {})}
        wrapper = wrap(door.port if door else None)
        argv = [*wrapper, program, *plan.argv[1:]] if wrapper else list(plan.argv)

        def spawn() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                argv,
                executable=None if wrapper else program,
                cwd=plan.cwd,
                env=env,
                stdin=stdio.stdin,
                stdout=stdio.stdout,
                stderr=stdio.stderr,
                start_new_session=os.name != "nt",
                preexec_fn=None if os.name == "nt" else lambda: set_limits(plan.limits, mark),
            )

        try:
            child = await self._spawn(plan, spawn)
        except BaseException:
            if door:
                await door.close()
            raise
        return _FloorRun(child, mark, door)

    async def _spawn(self, plan: Plan, spawn: Callable[[], subprocess.Popen[bytes]]) -> Child:
        try:
            return await Child.start(spawn, "sandbox-floor")
        except (OSError, subprocess.SubprocessError) as error:
            raise SandboxError(
                f"portable-floor could not start {plan.argv[0]!r}: {error}"
            ) from error


def find_program(plan: Plan) -> str:
    """The program's path: as `execvp` would find it with the plan's PATH and directory."""
    name = plan.argv[0]
    if os.sep in name:
        found = shutil.which(plan.cwd / name)
    else:
        found = shutil.which(name, path=plan.env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(f"{name}: command not found")
    return found


if sys.platform == "win32":

    def choose_mark() -> int:
        return 0

    def set_limits(limits: Limits, mark: int) -> None:
        raise NotImplementedError("Windows has no rlimits; windows-job-object has its own")

else:
    import resource

    def choose_mark() -> int:
        """A number for `set_limits` that most likely no other run of this host has."""
        room = _MARK_ROOM
        if sys.platform == "linux":
            ceiling = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
            room = room if ceiling == resource.RLIM_INFINITY else min(room, max(1, ceiling))
        return secrets.randbelow(room) + 1

    def set_limits(limits: Limits, mark: int) -> None:
        """Lowers the calling process's rlimits; `mark` makes descendants known by RLIMIT_MSGQUEUE,
        which no ordinary program looks at and which survives fork, exec, setsid and reparenting."""
        wanted = {
            resource.RLIMIT_CPU: (limits.cpu_seconds, limits.cpu_seconds + 1),
            resource.RLIMIT_FSIZE: (limits.file_bytes,) * 2,
            resource.RLIMIT_NOFILE: (limits.open_files,) * 2,
            resource.RLIMIT_CORE: (0, 0),
        }
        if sys.platform == "linux":
            wanted[resource.RLIMIT_MSGQUEUE] = (mark, mark)
        for which, (soft, hard) in wanted.items():
            ceiling = resource.getrlimit(which)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.setrlimit(which, (soft, hard))


class NotFound(Running):
    """There was no program to start: the command's failure, told as a shell tells it."""

    def __init__(self, stdio: Stdio, error: FileNotFoundError) -> None:
        os.write(stdio.stderr, f"{error}\n".encode())

    async def wait(self) -> Exit:
        return Exit(127, None)

    def members(self) -> Sequence[int]:
        return ()

    def kill(self) -> None: ...

    async def close(self) -> None: ...


class _FloorRun(Running):
    def __init__(self, child: Child, mark: int, door: LoopbackDoor | None) -> None:
        self._child = child
        self._mark = mark
        self._door = door
        self._linux = process_tree.available()

    async def wait(self) -> Exit:
        code = await self._child.wait()
        return Exit(None, -code) if code < 0 else Exit(code, None)

    def members(self) -> Sequence[int]:
        return process_tree.tree(self._child.pid) if self._linux else ()

    def kill(self) -> None:
        if os.name == "nt":
            subprocess.run(
                ["taskkill", "/F", "/T", "/PID", str(self._child.pid)],
                check=False,
                capture_output=True,
            )
            return
        if self._linux:
            self._kill_marked()
        else:
            _kill_group(self._child.pid)

    def _kill_marked(self) -> None:
        """Descendants may fork while they are killed; what they fork carries the mark too."""
        for _ in range(20):
            found = [
                pid
                for pid in process_tree.all_pids()
                if process_tree.message_queue_limit(pid) == self._mark
                and not process_tree.is_zombie(pid)
            ]
            if not found:
                return
            process_tree.kill_all(found)

    async def close(self) -> None:
        self.kill()
        if not self._child.ended:
            await self._child.wait()
        if self._door:
            await self._door.close()


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # Nobody left in it, or only a zombie (macOS says EPERM).
