"""Root's way to run a command as another user: never as the host's uid 0.

The command's bubblewrap runs from the start as an unprivileged user that owns nothing. What that
user can't reach, or must be able to own, is staged: cloned, shown as the user's own where the plan
names it, and attached in a mount namespace of the starting thread alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import SandboxError
from . import native
from .brokerage import owner_namespace
from .view import (
    DEVICE_NAMES,
    MERGED_ROOTS,
    SYSTEM_ROOTS,
    Bind,
    Devices,
    Mount,
    Overlay,
    Special,
    is_inside,
)

RESERVED_UID = 60_600
"""In a range that no allocation scheme hands out (systemd's UIDS-GIDS: 60578-61183 is unused)."""
Staged = Bind | Overlay
STAGE = Path("/tmp")
"""Any directory that every host has: the stage covers it for the starting thread alone."""
DEVICES = STAGE / "dev"
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "core": "/proc/kcore",
    "ptmx": "pts/ptmx",
}
_QUIET = native.MS_NOSUID | native.MS_NODEV


def objection() -> str | None:
    """Why a command of root's can't be the reserved user's here; None when it can."""
    missing = [
        name
        for name in ("uid_map", "gid_map")
        if not _is_mapped(RESERVED_UID, Path("/proc/self", name).read_text())
    ]
    if missing:
        return (
            f"it runs the commands of root as user and group {RESERVED_UID}, and the user namespace "
            f"of this process has none such (/proc/self/{missing[0]}); run as an ordinary user, or "
            "map a range of ids into the namespace (65536 of them, as container engines do)"
        )
    return None


def _is_mapped(uid: int, id_map: str) -> bool:
    """The lines are "first id inside, first id outside, count" (user_namespaces(7))."""
    ranges = (map(int, line.split()) for line in id_map.splitlines())
    return any(first <= uid < first + count for first, _, count in ranges)


@dataclass(frozen=True, slots=True)
class Stage:
    """What root prepares for a command's wrapper."""

    roots: tuple[Staged, ...]
    """Each attached on the stage under its index."""
    guards: tuple[Bind, ...]
    """Places within the roots that are mounts of their own. They come along where their root is
    bound; the wrapper takes several times as long for each bind that it makes."""

    @classmethod
    def of(cls, view: Iterable[Mount], guards: Sequence[Bind] = ()) -> Stage:
        """What has to be staged: each source that is not the system's and not inside another such
        source of the same ownership."""
        wanted = [
            mount
            for mount in (*view, *guards)
            if isinstance(mount, Bind | Overlay) and _needs_stage(mount)
        ]
        kept: dict[tuple[str, bool], Staged] = {}
        for mount in sorted(wanted, key=lambda mount: str(mount.source).count("/")):
            source, owned = str(mount.source), _is_owned(mount)
            if isinstance(mount, Overlay) or not any(
                other == owned and is_inside(source, root) for root, other in kept
            ):
                kept[source, owned] = mount
        roots = tuple(kept.values())
        return cls(roots, tuple(guard for guard in guards if guard not in roots))

    def view(self, view: Iterable[Mount], guards: Iterable[Bind]) -> tuple[Mount, ...]:
        """What is left for the wrapper to mount, and from where."""
        left = (guard for guard in guards if guard not in self.guards)
        return tuple(self._moved(mount) for mount in (*view, *left))

    def _moved(self, mount: Mount) -> Mount:
        """The mount with its source on the stage, if it is staged."""
        if isinstance(mount, Overlay):
            return Bind(STAGE / str(self.roots.index(mount)), mount.at, writable=True)
        if isinstance(mount, Bind):
            return replace(mount, source=Path(self._place(mount)))
        if isinstance(mount, Special) and mount.kind == "dev":
            return Devices(DEVICES, mount.at)
        return mount

    def path(self, path: Path) -> Path:
        """Where what is at this path is for the starting user."""
        return Path(self._place(Bind(path, path)))

    def _place(self, bind: Bind) -> str:
        source = str(bind.source)
        for index, root in enumerate(self.roots):
            if (
                isinstance(root, Bind)
                and root.owned == bind.owned
                and is_inside(source, root.source)
            ):
                return f"{STAGE}/{index}{source[len(str(root.source)) :]}"
        return source

    def build(self) -> None:
        """Gives the calling thread a mount namespace with the stage in it."""
        native.unshare(native.CLONE_NEWNS | native.CLONE_FS)
        native.mount(None, "/", None, native.MS_REC | native.MS_SLAVE)
        with contextlib.ExitStack() as held:
            trees = [_cloned(root, held) for root in self.roots]
            # What is to be staged may lie where the stage will cover it.
            native.mount("tmpfs", str(STAGE), "tmpfs", _QUIET, "mode=755")
            for index, (fd, root) in enumerate(zip(trees, self.roots, strict=True)):
                place = f"{STAGE}/{index}"
                if stat.S_ISDIR(os.fstat(fd).st_mode):
                    os.mkdir(place)
                else:
                    _touch(place)
                native.attach_mount(fd, place)
                if isinstance(root, Overlay):
                    _overlay(Path(place), root.size)
            for guard in self.guards:
                place = self._place(guard)
                fd = _opened(native.clone_mount(place, follow=False), held)
                if not guard.writable:
                    native.set_mount_attributes(fd, native.MOUNT_ATTR_RDONLY)
                native.attach_mount(fd, place)
            _make_devices(str(DEVICES), held)


def _opened(fd: int, held: contextlib.ExitStack) -> int:
    held.callback(os.close, fd)
    return fd


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _make_devices(directory: str, held: contextlib.ExitStack) -> None:
    """What the wrapper would make as /dev, with its terminals: it takes a fourth of its time for that,
    since it reads the list of all mounts for each that it makes."""
    os.mkdir(directory)
    os.chmod(directory, 0o755)  # Whatever the umask.
    for name in ("shm", "pts"):
        os.mkdir(f"{directory}/{name}")
    for name in DEVICE_NAMES:
        _touch(f"{directory}/{name}")
        fd = _opened(native.clone_mount(f"/dev/{name}"), held)
        native.set_mount_attributes(fd, native.MOUNT_ATTR_NOSUID)
        native.attach_mount(fd, f"{directory}/{name}")
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{directory}/{name}")
    flags = native.MS_NOSUID | native.MS_NOEXEC
    options = "newinstance,ptmxmode=0666,mode=620"
    native.mount("devpts", f"{directory}/pts", "devpts", flags, options)


def _needs_stage(mount: Staged) -> bool:
    """What the system has for all to read, every user can reach."""
    if isinstance(mount, Overlay):
        return True
    return str(mount.source) != "/" and (mount.writable or not _is_system(mount.source))


def _is_owned(mount: Staged) -> bool:
    return isinstance(mount, Overlay) or mount.owned


@functools.lru_cache(maxsize=1024)
def _is_system(path: Path) -> bool:
    return any(is_inside(path, root) for root in (*SYSTEM_ROOTS, *MERGED_ROOTS, "/etc"))


def _cloned(root: Staged, held: contextlib.ExitStack) -> int:
    """A detached mount of the root, with its owner's files shown as the command's own. Without set-user
    bits and devices, which the wrapper would take from each mount one by one."""
    fd = _opened(native.clone_mount(str(root.source)), held)
    if not _is_owned(root):
        return fd
    owner = os.fstat(fd).st_uid
    attributes = native.MOUNT_ATTR_NOSUID | native.MOUNT_ATTR_NODEV
    try:
        if owner == RESERVED_UID:
            native.set_mount_attributes(fd, attributes)
        else:
            namespace = owner_namespace(owner, RESERVED_UID)
            native.set_mount_attributes(fd, attributes | native.MOUNT_ATTR_IDMAP, namespace)
    except OSError as error:
        raise SandboxError(
            f"{root.source} is on a file system that can't show its files as another "
            f"user's ({error}); run as an ordinary user, or keep it on ext4, xfs or btrfs"
        ) from error
    return fd


def _overlay(place: Path, size: int) -> None:
    """Covers a staged directory with itself under a writable layer in memory."""
    layer = place.with_suffix(".layer")
    layer.mkdir()
    native.mount("tmpfs", str(layer), "tmpfs", _QUIET, f"size={size}")
    for name in ("upper", "work"):
        (layer / name).mkdir(mode=0o755)
        os.chown(layer / name, RESERVED_UID, RESERVED_UID)
    options = f"lowerdir={place},upperdir={layer}/upper,workdir={layer}/work"
    native.mount("overlay", str(place), "overlay", _QUIET, options)
