"""Network namespaces of the tests' own. Nothing in them has a route to anywhere."""

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from functools import cache

_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def loopback_up() -> None:
    """Switch the loopback interface of the present namespace on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def enter_new() -> None:
    """Move this thread to a new network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    loopback_up()


def in_new(*command: str) -> list[str]:
    """The command, to be run in a new user and network namespace, there as root."""
    return ["unshare", "--user", "--map-root-user", "--net", "--mount", *command]


@cache
def why_not() -> str | None:
    """Why namespaces can't be had here, or None when they can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces exist on Linux only"
    if shutil.which("unshare") is None:
        return "unshare(1) is not installed"
    done = subprocess.run(in_new("true"), capture_output=True, text=True, timeout=30)
    return None if done.returncode == 0 else f"no user namespaces: {done.stderr.strip()}"
