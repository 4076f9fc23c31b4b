"""`linux-namespaces`: what bubblewrap does, by a launcher of our own, for hosts without it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from ..backend import Running, Stdio
from ..child import Child
from ..errors import SandboxError
from ..isolation import Level, Property
from ..plan import NetHost, NetProxy, Plan
from . import seccomp, staging
from .bubblewrap import BEST as BUBBLEWRAP_BEST
from .bubblewrap import identity, prepare_stdio, spawn
from .bubblewrap_run import BubblewrapRun, Launch, Wiring
from .etc import filtered_etc
from .protect import protecting
from .render import init_argv
from .staging import Stage
from .view import (
    Bind,
    Devices,
    Link,
    Mount,
    Overlay,
    Special,
    Text,
    Tmpfs,
    environment,
    etc_files,
    mounts,
)

LAUNCHER = Path(__file__).with_name("launcher.py")


class Namespaces:
    """The backend."""

    name = "linux-namespaces"
    best: Mapping[Property, Level] = BUBBLEWRAP_BEST

    def identity(self) -> str:
        return f"{sys.executable} {sys.version}"

    def objection(self, plan: Plan | None = None) -> str | None:
        if seccomp.architecture() is None:
            return "its seccomp filter is written for x86_64 and aarch64 only"
        if not user_namespaces_allowed():
            return "this host does not let users make user namespaces"
        if plan is not None and plan.mode == "full":
            return "it has no full mode"
        return staging.objection() if os.geteuid() == 0 else None

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        arch = seccomp.architecture()
        if arch is None:
            raise SandboxError(f"{self.name}: {self.objection(plan)}")
        who = identity()
        with contextlib.ExitStack() as held:
            etc = filtered_etc(etc_files(plan, "sandbox", who.uid, who.gid))
            view = mounts(plan, etc)
            guards = held.enter_context(protecting(plan))
            prefix = Path(sys.base_prefix)
            stage = Stage.of((*view, Bind(prefix, prefix)), guards) if who.root else None
            prepare_stdio(stdio, root=who.root)
            env = environment(plan)
            wiring = held.enter_context(contextlib.closing(Wiring()))
            config = {
                "parent": os.getpid(),
                "status": wiring.status_write,
                "block": wiring.block_read,
                "namespaces": {
                    "host_network": isinstance(plan.net, NetHost),
                    "inner": [who.uid, who.gid],
                },
                "landlock": None,
                "seccomp": seccomp.program(arch, unix_sockets=plan.unix_sockets).hex(),
                "mounts": [
                    described(mount)
                    for mount in (stage.view(view, guards) if stage else (*view, *guards))
                ],
                "cwd": str(plan.cwd),
                "argv": init_argv(plan.argv, env),
                "env": dict(env),
            }
            command = launcher_command(stage.path(prefix) if stage else prefix, wiring, config)
            doors = plan.net.doors if isinstance(plan.net, NetProxy) else ()
            launch = held.enter_context(contextlib.closing(Launch(wiring, plan.limits, doors)))
            start = functools.partial(spawn, command, {}, stdio, wiring.passed, stage)
            try:
                child = await Child.start(start, "sandbox-namespaces", launch.prepare)
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxError(f"{self.name} could not be set up: {error}") from error
            return BubblewrapRun(child, launch, doors, held.pop_all(), self.name)


def launcher_command(prefix: Path, wiring: Wiring, config: Mapping[str, object]) -> list[str]:
    """The launcher under the Python of this prefix. The script goes along as a file in memory: its
    own place may be out of the starting user's reach."""
    script = wiring.memory_file(LAUNCHER.read_bytes(), "launcher")
    given = wiring.memory_file(json.dumps(config).encode(), "plan")
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = prefix / "bin" / name
    return [str(python), "-I", "-S", f"/proc/self/fd/{script}", str(given)]


def described(mount: Mount) -> dict[str, object]:
    """A mount as the launcher reads it."""
    at = str(mount.at)
    match mount:
        case Bind(source, _, writable):
            real = os.path.realpath(source)
            return {"what": "bind", "at": at, "source": real, "writable": writable}
        case Tmpfs(_, size, writable, mode):
            return {"what": "tmpfs", "at": at, "size": size, "writable": writable, "mode": mode}
        case Text(_, content):
            return {"what": "text", "at": at, "content": content.hex()}
        case Link(_, target):
            return {"what": "link", "at": at, "target": target}
        case Special(_, kind):
            return {"what": kind, "at": at}
        case Devices(source, _):
            return {"what": "bind", "at": at, "source": str(source), "writable": False}
        case Overlay(source, _, size):
            real = os.path.realpath(source)
            return {"what": "overlay", "at": at, "source": real, "size": size}
        case _:
            assert_never(mount)


@functools.cache
def user_namespaces_allowed() -> bool:
    """Tried by unshare(1), the cheapest child that can tell; where it is missing, by the sysctls."""
    unshare = shutil.which("unshare", path="/usr/bin:/bin")
    if unshare is not None:
        attempt = subprocess.run([unshare, "--user", "true"], capture_output=True, check=False)
        return attempt.returncode == 0
    allowed = Path("/proc/sys/user/max_user_namespaces")
    return allowed.exists() and int(allowed.read_text()) > 0
