"""What one command may touch: pure data, checked on construction."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from .isolation import Property

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

Mode = Literal["read_only", "workspace_write", "overlay", "full"]
"""What the command may do to the workspace.

`read_only`: nothing. `workspace_write`: write, except protected paths. `overlay`: write anywhere,
and nothing of it stays. `full`: the whole file system as the calling user sees it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one command; sizes in bytes, times in seconds."""

    wall_seconds: float = 120
    cpu_seconds: int = 60
    """CPU time of the whole tree."""
    memory_bytes: int = 2 * GIB
    """Proportional set size of the whole tree."""
    processes: int = 256
    open_files: int = 512
    """Per process."""
    file_bytes: int = GIB
    """Size of one file, and of what is kept of the spilled output."""
    tmp_bytes: int = 256 * MIB
    """Each of `/tmp`, the home directory and `/dev/shm`, where they are the sandbox's own."""
    output_bytes: int = MIB
    """Kept in memory of each stream, half at its head and half at its tail."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"limits.{name} is {value!r}; give a number above 0")


@dataclass(frozen=True, slots=True)
class NetNone:
    """No network at all."""


@dataclass(frozen=True, slots=True)
class NetHost:
    """The network of the host, unfiltered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A socket that the command can reach and that code outside the sandbox serves.

    `stream` sockets are bound and listening, `datagram` sockets bound, when `serve` gets them.
    `serve` owns the socket and runs until it is cancelled at the end of the command.
    Where the backend has a network namespace, the address is bound inside it as given; elsewhere
    it is a free port of the host's loopback, and only the first door is opened.
    """

    serve: Callable[[socket.socket], Awaitable[None]]
    host: str = "127.0.0.1"
    port: int = 3128
    kind: Literal["stream", "datagram"] = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetProxy:
    """No network but the doors, of which the first is the proxy."""

    doors: tuple[Door, ...]
    variables: Callable[[int, bool], Mapping[str, str]]
    """What is added to the plan's environment so that programs use the proxy: from the port of the
    first door, and whether only the command can reach it."""

    def __post_init__(self) -> None:
        if not self.doors or self.doors[0].kind != "stream":
            raise ValueError("net.doors: the first door must be the proxy's stream socket")


Net = NetNone | NetHost | NetProxy

GIT_NAMES = ("hooks", "config", "config.worktree", "commondir")
"""What in a repository makes git run something. `commondir` says where the others are instead."""
PROTECTED_NAMES = (
    *(f".git/{name}" for name in GIT_NAMES),
    ".envrc",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".husky",
    ".mcp.json",
    ".io-harness",
    "io-harness.yaml",
)
"""Files that something on the host runs later: never writable from a sandbox, even when absent."""


def protected_in(workspace: Path) -> tuple[Path, ...]:
    """The protected paths of a workspace, and of the repository that its `.git` file names."""
    named = (folder / name for folder in _repository_elsewhere(workspace) for name in GIT_NAMES)
    return (*(workspace / name for name in PROTECTED_NAMES), *named)


def _repository_elsewhere(workspace: Path) -> Iterator[Path]:
    """See "gitfile" in gitglossary(7)."""
    pointer = workspace / ".git"
    if pointer.is_file():
        key, _, value = pointer.read_text(errors="surrogateescape").partition(":")
        if key == "gitdir" and value.strip() and "\0" not in value:
            yield Path(os.path.realpath(workspace / value.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One command and what it may touch. Every path is absolute.

    `ValueError` names the field of a plan that makes no sense.
    """

    argv: tuple[str, ...]
    cwd: Path
    workspace: Path
    mode: Mode = "workspace_write"
    read_only_roots: tuple[Path, ...] = ()
    writable_roots: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    """Paths that the command sees empty."""
    protected: tuple[Path, ...] = ()
    """Paths that stay as they are (or stay absent) even in a writable place."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The complete environment; see `base_env`."""
    limits: Limits = Limits()
    net: Net = NetNone()
    unix_sockets: bool = False
    """Whether the command may make Unix-domain sockets (`socketpair` it always may)."""
    merge_streams: bool = True
    """Whether stderr goes where stdout goes, in order; `Completed.stderr` is empty then."""
    stdin: bytes | None = None
    """What the command reads; None: nothing."""
    require: frozenset[Property] = frozenset()
    """Properties that must be enforced, or nothing is started."""

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("argv is empty; give a program and its arguments")
        for index, word in enumerate(self.argv):
            if "\0" in word:
                raise ValueError(f"argv[{index}] holds a NUL byte, which no program can receive")
        for name in ("cwd", "workspace"):
            _require_absolute(name, getattr(self, name))
        for name in ("read_only_roots", "writable_roots", "hidden", "protected"):
            for path in getattr(self, name):
                _require_absolute(name, path)
        for key, value in self.env.items():
            if not key or "=" in key or "\0" in key + value:
                raise ValueError(f"env: {key!r} is no variable that a program can receive")


def _require_absolute(name: str, path: Path) -> None:
    if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise ValueError(f"{name}: {str(path)!r} is not an absolute path without '..'")


BASE_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "HOME", "USER", "LOGNAME")
WINDOWS_VARIABLES = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE")


def base_env(allow: Iterable[str] = ()) -> dict[str, str]:
    """The variables that every command gets, and those that `allow` names, from `os.environ`."""
    names = (*BASE_VARIABLES, *(WINDOWS_VARIABLES if os.name == "nt" else ()), *allow)
    return {name: os.environ[name] for name in names if name in os.environ}
