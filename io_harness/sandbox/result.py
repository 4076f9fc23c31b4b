"""What became of one command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .isolation import Isolation

Cause = Literal["exited", "signalled", "wall", "cpu", "memory", "pids", "disk"]
"""Why the command ended: by itself (`exited`, `signalled`) or at which limit."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What is kept of one output stream: its beginning and its end."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    """Bytes that the command wrote."""

    @property
    def omitted(self) -> int:
        """Bytes between head and tail that were not kept."""
        return self.total - len(self.head) - len(self.tail)

    def text(self, limit: int | None = None) -> str:
        """The stream as text of at most about `limit` characters, the gap marked with its size.

        Bytes that are not UTF-8 show as U+FFFD.
        """
        if self.omitted:
            budget = len(self.head) + len(self.tail) if limit is None else limit
            head = self.head[: budget // 2] if budget < 2 * len(self.head) else self.head
            tail = self.tail[max(0, len(self.tail) - (budget - len(head))) :]
        else:
            whole = self.head + self.tail
            budget = len(whole) if limit is None else min(limit, len(whole))
            head, tail = whole[: budget // 2], whole[len(whole) - (budget - budget // 2) :]
        gap = self.total - len(head) - len(tail)
        if not gap:
            return (head + tail).decode(errors="replace")
        mark = f"\n[... {gap} bytes omitted ...]\n"
        return head.decode(errors="replace") + mark + tail.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A command that ended."""

    cause: Cause
    exit_code: int | None
    """None unless the cause is `exited`."""
    signal: int | None
    """The signal that ended it, for `signalled` and where a limit ended it by a signal."""
    stdout: Captured
    stderr: Captured
    seconds: float
    """Wall time."""
    isolation: Isolation

    @property
    def ok(self) -> bool:
        return self.cause == "exited" and self.exit_code == 0
