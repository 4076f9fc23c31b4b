"""Turns a view into bubblewrap's options: pure, but for the descriptors that it asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from .view import Bind, Devices, Link, Mount, Overlay, Special, Text, Tmpfs

_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_SHELLS = ("PWD", "OLDPWD", "SHLVL")


def render(
    view: Iterable[Mount],
    *,
    uid: int,
    gid: int,
    host_network: bool,
    nested_users: bool,
    cwd: Path,
    text_fd: Callable[[bytes], int],
    status_fd: int,
    block_fd: int,
    seccomp_fd: int,
) -> list[bytes]:
    """The options, in bubblewrap's order of execution. `nested_users` leaves it to the seccomp filter
    alone that the command makes no user namespaces of its own."""
    words: list[str | Path] = ["--unshare-user", "--unshare-pid", "--unshare-ipc"]
    words += ["--unshare-uts", "--unshare-cgroup-try"]
    if not host_network:
        words.append("--unshare-net")
    if not nested_users:
        words.append("--disable-userns")
    words += ["--uid", str(uid), "--gid", str(gid), "--hostname", "sandbox"]
    words += ["--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1"]
    words += ["--json-status-fd", str(status_fd), "--block-fd", str(block_fd)]
    words += ["--seccomp", str(seccomp_fd)]
    late: list[str | Path] = []
    whole_host = False
    for mount in view:
        whole_host = whole_host or (isinstance(mount, Bind) and mount.at == Path("/"))
        words += _mount(mount, text_fd)
        if isinstance(mount, Tmpfs) and not mount.writable:
            late += ["--remount-ro", mount.at]
    words += late
    if not whole_host:
        words += ["--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--chdir", cwd]
    return [os.fsencode(word) for word in words]


def _mount(mount: Mount, text_fd: Callable[[bytes], int]) -> list[str | Path]:
    match mount:
        case Bind(source, at, writable):
            return ["--bind" if writable else "--ro-bind", source, at]
        case Tmpfs(at, size, _, mode):
            return ["--perms", f"{mode:04o}", "--size", str(size), "--tmpfs", at]
        case Text(at, content):
            return ["--perms", "0444", "--ro-bind-data", str(text_fd(content)), at]
        case Link(at, target):
            return ["--symlink", target, at]
        case Special(at, kind):
            return [f"--{kind}", at]
        case Devices(source, at):
            return ["--dev-bind", source, at]
        case Overlay(source, at, _):
            # Whoever starts bubblewrap has mounted the overlay there.
            return ["--bind", source, at]
        case _:
            assert_never(mount)


_OVERLAY_SCRIPT = """
set -e
mount -t tmpfs -o "size=$2,mode=755" tmpfs /sys
mkdir /sys/upper /sys/work
cd "$1"
layers=lowerdir=.,upperdir=/sys/upper,workdir=/sys/work
mount -t overlay -o "$layers,userxattr" overlay . 2>/dev/null || mount -t overlay -o "$layers" overlay .
cd /
shift 2
exec "$@"
"""


def overlay_prefix(workspace: Path, size: int) -> list[str]:
    """What an ordinary user puts before bubblewrap's command to have an overlay on the workspace.

    It lies in a user and a mount namespace of their own, its writable layer in memory. /sys is a
    directory that exists everywhere and that bubblewrap has no use for.
    """
    enter = ["/usr/bin/unshare", "--user", "--map-root-user", "--mount"]
    return [*enter, "/bin/sh", "-c", _OVERLAY_SCRIPT, "sh", str(workspace), str(size)]


def init_argv(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """A shell as PID 1 that runs the command, collects orphans, and ends with the command's code.

    Bubblewrap's own PID 1 carries no seccomp filter. The shell takes out what shells add to the
    environment; variables with names that a shell would drop are put back by env(1).
    """
    added = [name for name in _SET_BY_SHELLS if name not in env]
    odd = [f"{name}={env[name]}" for name in env if not _SHELL_NAME.fullmatch(name)]
    command = ["/usr/bin/env", *odd, *argv] if odd else list(argv)
    script = f'unset {" ".join(added)}; "$@"; exit $?' if added else '"$@"; exit $?'
    return ["/bin/sh", "-c", script, "sh", *command]
