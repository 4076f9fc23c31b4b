"""System calls that Python has no function for, by ctypes. Each raises `OSError`."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

CLONE_FS = 0x200
CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 4
AT_SYMLINK_NOFOLLOW = 0x100
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4
MOUNT_ATTR_IDMAP = 0x100000
MNT_DETACH = 2

_NUMBERS = {
    # x86_64, aarch64
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "setgroups": (116, 159),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "pivot_root": (155, 41),
    "seccomp": (317, 277),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """A raw system call: for the calling thread alone, where the C library would tell them all."""
    number = _NUMBERS[name][0 if platform.machine() == "x86_64" else 1]
    converted = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return _checked(_libc().syscall(ctypes.c_long(number), *converted), name)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _checked(_libc().unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _checked(_libc().setns(fd, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = (os.fsencode(text) if text is not None else None for text in (source, target, kind))
    result = _libc().mount(*encoded, ctypes.c_ulong(flags), os.fsencode(data) or None)
    _checked(result, f"mount on {target}")


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _checked(_libc().umount2(os.fsencode(target), flags), f"umount {target}")


def clone_mount(path: str, *, follow: bool = True) -> int:
    """A detached copy of the mount at `path`, with all below it, as a file descriptor."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    flags |= 0 if follow else AT_SYMLINK_NOFOLLOW
    return call("open_tree", AT_FDCWD, os.fsencode(path), flags)


def set_mount_attributes(mount_fd: int, attributes: int, user_namespace: int = 0) -> None:
    """Of a detached mount and all below it. With `MOUNT_ATTR_IDMAP` it shows its files as owned by
    whom the namespace maps their owners to. See mount_setattr(2)."""
    packed = struct.pack("QQQQ", attributes, 0, 0, user_namespace)
    call("mount_setattr", mount_fd, b"", AT_EMPTY_PATH | AT_RECURSIVE, packed, len(packed))


def attach_mount(mount_fd: int, target: str) -> None:
    call(
        "move_mount", mount_fd, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH
    )  # fmt: skip


def become(uid: int, gid: int) -> None:
    """Gives the calling thread, and what it starts, another user for good."""
    call("setgroups", 0, None)
    call("setresgid", gid, gid, gid)
    call("setresuid", uid, uid, uid)
