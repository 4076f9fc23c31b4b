"""The file system that a command sees, as a list of mounts: the same for every Linux backend that
has a mount namespace."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from ..errors import SandboxError
from ..plan import NetHost, NetNone, NetProxy, Plan
from .tools import tool_roots


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or directory of the host."""

    source: Path
    at: Path
    writable: bool = False
    owned: bool = False
    """Named by the plan, so whoever may run the plan may read it: where the command runs as
    another user, what belongs to the owner of the source belongs to that user."""


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """An empty directory in memory."""

    at: Path
    size: int
    writable: bool = True
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Text:
    """A read-only file of this content."""

    at: Path
    content: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    at: Path
    target: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """A directory of the host, writable, of which no write stays."""

    source: Path
    at: Path
    size: int


@dataclass(frozen=True, slots=True)
class Special:
    """`proc`, or a minimal `dev`."""

    at: Path
    kind: str


@dataclass(frozen=True, slots=True)
class Devices:
    """A minimal `dev` that is made already, as a directory of the host in which devices work."""

    source: Path
    at: Path


Mount = Bind | Tmpfs | Text | Link | Overlay | Special | Devices

SYSTEM_ROOTS = ("/usr", "/opt", "/nix/store", "/gnu/store", "/snap")
MERGED_ROOTS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
DEVICE_NAMES = ("null", "zero", "full", "random", "urandom", "tty")
_HIDDEN_SIZE = 4096


def is_inside(path: Path | str, root: Path | str) -> bool:
    """Whether the path is the root or below it; on text, since this is asked often."""
    outer = str(root)
    return str(path) == outer or str(path).startswith(outer if outer == "/" else outer + "/")


def mounts(plan: Plan, etc: Path) -> tuple[Mount, ...]:
    """The mounts of a plan, with `etc` as its /etc, in the order in which they are made: outer
    before inner, and at one place the plan's own word last.

    Raises `SandboxError` for a path of the plan that is not there.
    """
    _require_present(plan)
    found: list[Mount] = []
    if plan.mode == "full":
        found.append(Bind(Path("/"), Path("/"), writable=True))
    else:
        found += _system()
        found.append(Bind(etc, Path("/etc")))
        found += _private(plan)
        found += (Bind(root, root) for root in tool_roots(plan.env))
    found += (Special(Path("/proc"), "proc"), Special(Path("/dev"), "dev"))
    found.append(Tmpfs(Path("/dev/shm"), plan.limits.tmp_bytes, mode=0o1777))
    found += (Bind(root, root, owned=True) for root in plan.read_only_roots)
    found += (Bind(root, root, writable=True, owned=True) for root in plan.writable_roots)
    found.append(_workspace(plan))
    found += _hidden(plan)
    # A stable sort: what comes later in the list wins at the same place.
    return tuple(sorted(_last_of_each_place(found), key=lambda mount: len(mount.at.parts)))


def _last_of_each_place(found: list[Mount]) -> list[Mount]:
    return list({mount.at: mount for mount in found}.values())


def _require_present(plan: Plan) -> None:
    named: list[tuple[str, Path]] = [("workspace", plan.workspace)]
    named += (("read_only_roots", root) for root in plan.read_only_roots)
    named += (("writable_roots", root) for root in plan.writable_roots)
    for field, path in named:
        if not path.exists():
            raise SandboxError(f"{field}: {path} does not exist")
    if not plan.workspace.is_dir():
        raise SandboxError(f"workspace: {plan.workspace} is not a directory")


def _workspace(plan: Plan) -> Mount:
    at = plan.workspace
    match plan.mode:
        case "overlay":
            return Overlay(at, at, plan.limits.file_bytes)
        case "read_only":
            return Bind(at, at, owned=True)
        case "workspace_write" | "full":
            return Bind(at, at, writable=True, owned=True)


def _hidden(plan: Plan) -> Iterator[Mount]:
    """Covers of what is there to be hidden: a mount point that was absent would be made on the host.
    A link is hidden by hiding what it leads to, where that is in sight."""
    shown = (plan.workspace, *plan.read_only_roots, *plan.writable_roots)
    for path in plan.hidden:
        at = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not at.exists() or (at != path and not any(is_inside(at, root) for root in shown)):
            continue
        if at.is_dir():
            yield Tmpfs(at, _HIDDEN_SIZE, writable=False, mode=0o755)
        else:
            yield Text(at, b"")


@functools.cache
def _system() -> tuple[Mount, ...]:
    return tuple(_system_roots())


def _system_roots() -> Iterator[Mount]:
    for name in SYSTEM_ROOTS:
        root = Path(name)
        if root.is_dir() and any(root.iterdir()):
            yield Bind(root, root)
    for name in MERGED_ROOTS:
        root = Path(name)
        if root.is_symlink():
            yield Link(root, os.readlink(root))
        elif root.is_dir():
            yield Bind(root, root)


def etc_files(plan: Plan, user: str, uid: int, gid: int) -> Mapping[str, str]:
    """The files of /etc that are the sandbox's own."""
    home = plan.env.get("HOME", "/tmp")
    nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    files = {
        "passwd": f"{user}:x:{uid}:{gid}::{home}:/bin/sh\n{nobody}",
        "group": f"{user}:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
    match plan.net:
        case NetHost():
            files |= {name: _content(Path("/etc", name)) for name in ("hosts", "resolv.conf")}
        case NetProxy(doors=doors):
            servers = [f"nameserver {door.host}\n" for door in doors if door.kind == "datagram"]
            files["resolv.conf"] = "".join((*servers, "options timeout:2 attempts:2\n"))
        case NetNone():
            pass
        case _:
            assert_never(plan.net)
    return files


def _content(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _private(plan: Plan) -> Iterator[Mount]:
    """Writable places of the command's own."""
    size = plan.limits.tmp_bytes
    yield Tmpfs(Path("/tmp"), size, mode=0o1777)
    yield Link(Path("/var/tmp"), "/tmp")
    home = Path(plan.env.get("HOME", "/tmp"))
    if home.is_absolute() and len(home.parts) > 1 and ".." not in home.parts:
        yield Tmpfs(home, size, mode=0o700)


def environment(plan: Plan) -> Mapping[str, str]:
    """The plan's variables, and those of its proxy."""
    if not isinstance(plan.net, NetProxy):
        return plan.env
    return {**plan.env, **plan.net.variables(plan.net.doors[0].port, True)}
