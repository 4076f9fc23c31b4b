"""The worker's side of the broker."""

from __future__ import annotations

import functools
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import SandboxError
from ..plan import Door
from .broker import MESSAGE_BYTES

_lock = threading.Lock()


class _Broker:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("broker.py")
        self.mark = (1 << 50) + secrets.randbelow(1 << 50)
        self._channel = ours
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script), str(theirs.fileno()), str(self.mark)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={},
                cwd="/",
                process_group=0,
            )

    def ask(self, request: dict[str, Any], fds: Sequence[int], expected: int) -> list[int]:
        socket.send_fds(self._channel, [json.dumps(request).encode()], fds)
        data, received, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, expected)
        answer = json.loads(data) if data else {"error": "the broker ended"}
        if "error" in answer:
            raise SandboxError(answer["error"])
        for fd in received:
            os.set_inheritable(fd, False)
        return received

    def end(self) -> None:
        """Killed first: on a closed channel it would take the whole group along."""
        self.process.kill()
        self.process.wait()
        self._channel.close()


_broker: list[_Broker] = []


def _living() -> _Broker:
    """With `_lock` held."""
    if _broker and _broker[0].process.poll() is not None:
        _broker.pop().end()
    if not _broker:
        _broker.append(_Broker())
    return _broker[0]


def wrapper_group() -> int:
    """The process group to start wrappers in: it ends with this process, even when that is killed.
    A background group gets no Ctrl-C of the worker's terminal either."""
    with _lock:
        return _living().process.pid


def mark() -> int:
    """What a command's RLIMIT_RTTIME is set to, in microseconds, before it begins: what has it ends
    with this process, even when that is killed."""
    with _lock:
        return _living().mark


def _ask(request: dict[str, Any], fds: Sequence[int], expected: int) -> list[int]:
    with _lock:
        try:
            return _living().ask(request, fds, expected)
        except (OSError, SandboxError) as error:
            # An answer that comes yet must not be taken for the next one's.
            _broker.pop().end()
            raise SandboxError(f"namespace broker: {error}") from error


def open_doors(pid: int, doors: Sequence[Door]) -> list[socket.socket]:
    """Sockets in the network namespace of a process, one for each door. Blocks for about 1 ms."""
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        wanted = [(door.kind, door.host, door.port) for door in doors]
        fds = _ask({"want": "sockets", "doors": wanted}, [namespace], len(doors))
    finally:
        os.close(namespace)
    return [socket.socket(fileno=fd) for fd in fds]


@functools.cache
def owner_namespace(owner: int, shown_as: int) -> int:
    """File descriptor of a user namespace that shows files of `owner` as another user's.

    Every other id stays itself, but for `shown_as`, which then has no files. Kept for the life of
    the process.
    """
    lines: list[str] = []
    for first, end in _between((owner, shown_as)):
        if end > first:
            lines.append(f"{first} {first} {end - first}")
    lines.append(f"{owner} {shown_as} 1")
    return _ask({"want": "user namespace", "map": "\n".join(lines)}, [], 1)[0]


def _between(holes: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of ids without the holes."""
    edges = sorted(set(holes))
    starts = [0, *(hole + 1 for hole in edges)]
    ends = [*edges, 2**32 - 1]
    return list(zip(starts, ends, strict=True))
