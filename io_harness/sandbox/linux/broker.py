"""A small single-threaded process that enters namespaces on request, and hands out what it made
there. Run as a script: `python -I -S broker.py FD MARK`.

Joining a user namespace needs a process of one thread, which a worker is not. One request is one
datagram of JSON on the socket, with file descriptors; so is one answer.

It leads a process group, to which every wrapper belongs until its command begins. When the worker is
gone, and the socket with it, it ends the group: a wrapper in the middle of its start has not yet
tied its life to the worker's. It ends what carries the mark as well, a limit that commands have from
just before they begin: bubblewrap ties a command to its own life just after.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
NS_GET_USERNS = 0xB701
SIOCGIFFLAGS, IFF_UP = 0x8913, 1
MESSAGE_BYTES = 64 * 1024
LOOPBACK_SECONDS = 5
MARK_LINE = "Max realtime timeout"
"""RLIMIT_RTTIME in /proc/PID/limits; nothing in a sandbox has a real-time schedule to be limited."""
CLOSED = 3
"""Exit status of a child that found the channel closed."""


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Each request is met by a child of its own, forked ahead of it: what it enters ends with it,
    and nobody waits for the fork."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # The terminal's Ctrl-C is for the worker.
    _libc()
    while True:
        pid = os.fork()
        if pid == 0:
            os._exit(_serve_one(channel))
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            _send(channel, {"error": f"ended by signal {os.WTERMSIG(status)}"})
        elif os.WEXITSTATUS(status) == CLOSED:
            _end_marked(sys.argv[2])
            os.killpg(0, signal.SIGKILL)


def _end_marked(mark: str) -> None:
    """What is killed while it forks leaves a child with the mark to the next look."""
    for _ in range(10):
        found = [pid for pid in os.listdir("/proc") if pid.isdigit() and _has_mark(pid, mark)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)


def _has_mark(pid: str, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/limits") as file:
            return any(line.startswith(MARK_LINE) and line.split()[4] == mark for line in file)
    except OSError:
        return False  # It has ended.


def _serve_one(channel: socket.socket) -> int:
    """Waits for a request and answers it. Returns `CLOSED` when there will be no more."""
    data, fds, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 8)
    if not data:
        return CLOSED
    try:
        request = json.loads(data)
        if request["want"] == "sockets":
            made = [each.detach() for each in _sockets(request, fds)]
            socket.send_fds(channel, [b"{}"], made)
        else:
            with _user_namespace(request) as fd:
                socket.send_fds(channel, [b"{}"], [fd])
    except Exception as error:  # noqa: BLE001 - told to the worker, which raises it
        _send(channel, {"error": f"{type(error).__name__}: {error}"})
    return 0


def _send(channel: socket.socket, answer: dict[str, str]) -> None:
    channel.send(json.dumps(answer).encode())


def _sockets(request: dict[str, Any], fds: list[int]) -> list[socket.socket]:
    """Bound sockets in the network namespace that `fds[0]` names."""
    owner = fcntl.ioctl(fds[0], NS_GET_USERNS)
    for fd, kind in ((owner, CLONE_NEWUSER), (fds[0], CLONE_NEWNET)):
        if _libc().setns(fd, kind) < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"setns: {os.strerror(code)}")
    made: list[socket.socket] = []
    for kind, host, port in request["doors"]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        stream = kind == "stream"
        made.append(socket.socket(family, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM))
        if len(made) == 1:
            _await_loopback(made[0])
        made[-1].bind((host, port))
        if stream:
            made[-1].listen(128)
    return made


def _await_loopback(any_socket: socket.socket) -> None:
    """Waits until bubblewrap has brought loopback up. It tells its child's pid before it does so,
    and fails when someone else was quicker."""
    deadline = time.monotonic() + LOOPBACK_SECONDS
    while True:
        answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        if struct.unpack_from("16sh", answer)[1] & IFF_UP:
            return
        if time.monotonic() > deadline:
            raise OSError(f"loopback did not come up within {LOOPBACK_SECONDS} s")
        time.sleep(0.0002)


@contextlib.contextmanager
def _user_namespace(request: dict[str, Any]) -> Iterator[int]:
    """A user namespace with the given lines in both of its maps."""
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        failed = _libc().unshare(CLONE_NEWUSER)
        os.write(go, b"x" if failed else b".")
        signal.pause()
        os._exit(0)
    try:
        os.close(go)
        if os.read(ready, 1) != b".":
            raise OSError("a user namespace can't be made")
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(request["map"])
        fd = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
