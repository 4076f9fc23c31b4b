"""Turns a view into bubblewrap's options: pure, but for the descriptors that it asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from .view import Bind, Link, Mount, Overlay, Special, Text, Tmpfs

_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_SHELLS = ("PWD", "OLDPWD", "SHLVL")


def render(
    view: Iterable[Mount],
    *,
    uid: int,
    gid: int,
    host_network: bool,
    cwd: Path,
    text_fd: Callable[[bytes], int],
    status_fd: int,
    block_fd: int,
    seccomp_fd: int,
) -> list[bytes]:
    """The options, in bubblewrap's order of execution."""
    words: list[str | Path] = ["--unshare-user", "--unshare-pid", "--unshare-ipc"]
    words += ["--unshare-uts", "--unshare-cgroup-try"]
    if not host_network:
        words.append("--unshare-net")
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
        case Overlay(source, at, _):
            return ["--overlay-src", source, "--tmp-overlay", at]
        case _:
            assert_never(mount)


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
