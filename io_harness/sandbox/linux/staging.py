"""Root's way to run a command as another user: never as the host's uid 0.

The command's bubblewrap runs from the start as an unprivileged user that owns nothing. What that
user can't reach, or must be able to own, is staged: cloned, shown as the user's own where the plan
names it, and attached in a mount namespace of the starting thread alone.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..errors import SandboxError
from . import native
from .brokerage import owner_namespace
from .view import SYSTEM_ROOTS, Bind, Mount, Overlay, is_inside

RESERVED_UID = 60_600
"""In a range that no allocation scheme hands out (systemd's UIDS-GIDS: 60578-61183 is unused)."""
Staged = Bind | Overlay
STAGE = Path("/tmp")
"""Any directory that every host has: the stage covers it for the starting thread alone."""


def staged_roots(mounts: Iterable[Mount]) -> tuple[Staged, ...]:
    """What has to be staged: each source that is outside the system's roots and not inside another
    such source of the same ownership."""
    wanted = [
        mount
        for mount in mounts
        if isinstance(mount, Bind | Overlay) and not _is_system(mount.source)
    ]
    kept: dict[tuple[Path, bool], Staged] = {}
    for mount in sorted(wanted, key=lambda mount: len(mount.source.parts)):
        owned = _is_owned(mount)
        if isinstance(mount, Overlay) or not any(
            is_inside(mount.source, root) and other == owned for root, other in kept
        ):
            kept[mount.source, owned] = mount
    return tuple(kept.values())


def _is_owned(mount: Staged) -> bool:
    return isinstance(mount, Overlay) or mount.owned


_SYSTEM = tuple(map(Path, (*SYSTEM_ROOTS, "/etc", "/bin", "/sbin", "/lib", "/lib64")))


@functools.lru_cache(maxsize=1024)
def _is_system(path: Path) -> bool:
    return str(path) == "/" or any(is_inside(path, root) for root in _SYSTEM)


def restaged(mount: Mount, roots: tuple[Staged, ...]) -> Mount:
    """The mount with its source on the stage, if it is staged."""
    if not isinstance(mount, Bind | Overlay):
        return mount
    for index, root in enumerate(roots):
        if isinstance(mount, Overlay):
            if root == mount:
                return Bind(STAGE / str(index), mount.at, writable=True)
        elif (
            isinstance(root, Bind)
            and root.owned == mount.owned
            and is_inside(mount.source, root.source)
        ):
            staged = STAGE / str(index) / mount.source.relative_to(root.source)
            return replace(mount, source=staged)
    return mount


def staged_path(path: Path, roots: tuple[Staged, ...]) -> Path:
    """Where what is at this path is for the starting user."""
    mount = restaged(Bind(path, path), roots)
    return mount.source if isinstance(mount, Bind) else path


def stage(roots: tuple[Staged, ...]) -> None:
    """Gives the calling thread a mount namespace in which the roots are on the stage."""
    native.unshare(native.CLONE_NEWNS | native.CLONE_FS)
    native.mount(None, "/", None, native.MS_REC | native.MS_SLAVE)
    trees: list[tuple[int, bool]] = []
    for root in roots:
        fd = native.clone_mount(str(root.source))
        trees.append((fd, root.source.is_dir()))
        owner = root.source.stat().st_uid
        if _is_owned(root) and owner != RESERVED_UID:
            try:
                native.map_owners(fd, owner_namespace(owner, RESERVED_UID))
            except OSError as error:
                raise SandboxError(
                    f"{root.source} is on a file system that can't show its files as another "
                    f"user's ({error}); run as an ordinary user, or keep it on ext4, xfs or btrfs"
                ) from error
    native.mount("tmpfs", str(STAGE), "tmpfs", native.MS_NOSUID | native.MS_NODEV, "mode=755")
    for index, (fd, is_directory) in enumerate(trees):
        place = STAGE / str(index)
        if is_directory:
            place.mkdir()
        else:
            place.touch()
        native.attach_mount(fd, str(place))
        os.close(fd)
        root = roots[index]
        if isinstance(root, Overlay):
            _overlay(place, root.size)


def _overlay(place: Path, size: int) -> None:
    """Covers a staged directory with itself under a writable layer in memory."""
    layer = place.with_suffix(".layer")
    layer.mkdir()
    native.mount("tmpfs", str(layer), "tmpfs", native.MS_NOSUID | native.MS_NODEV, f"size={size}")
    for name in ("upper", "work"):
        (layer / name).mkdir(mode=0o755)
        os.chown(layer / name, RESERVED_UID, RESERVED_UID)
    options = f"lowerdir={place},upperdir={layer}/upper,workdir={layer}/work"
    native.mount("overlay", str(place), "overlay", native.MS_NOSUID | native.MS_NODEV, options)
