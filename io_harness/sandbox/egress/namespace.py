"""Whether a socket belongs to another network namespace than this process."""

from __future__ import annotations

import os
import socket
import sys

_SO_NETNS_COOKIE = 71
"""Linux 5.14 and newer (asm-generic/socket.h); not yet among the names of Python's `socket`."""
_SIOCGSKNS = 0x894C
"""Linux 4.10 and newer (linux/sockios.h): a descriptor of the socket's namespace."""


def is_elsewhere(sock: socket.socket) -> bool:
    """True when the kernel says that the socket lives in another network namespace.

    False where it can't be known, so that a caller takes the careful way.
    """
    if sys.platform != "linux":
        return False
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            mine = here.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        return mine != sock.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    except OSError:
        return _differs_by_file(sock)


def _differs_by_file(sock: socket.socket) -> bool:
    """The older way. It needs the rights of the namespace's owner, which its maker has."""
    import fcntl  # Not on every system.

    try:
        fd = fcntl.ioctl(sock.fileno(), _SIOCGSKNS)
    except OSError:
        return False
    try:
        return not os.path.samestat(os.fstat(fd), os.stat("/proc/thread-self/ns/net"))
    finally:
        os.close(fd)
