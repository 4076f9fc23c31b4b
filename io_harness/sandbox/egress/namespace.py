"""Whether a socket belongs to another network namespace than this process."""

from __future__ import annotations

import socket

_SO_NETNS_COOKIE = 71
"""Linux 5.14 and newer (asm-generic/socket.h); not yet among the names of Python's `socket`."""


def is_elsewhere(sock: socket.socket) -> bool:
    """True when the kernel says that the socket lives in another network namespace.

    False where it can't be known, so that a caller takes the careful way.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            mine = here.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        theirs = sock.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    except OSError:
        return False
    return mine != theirs
