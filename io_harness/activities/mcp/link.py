"""What a transport tells its connection: that it ended, and how much nonsense came."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from .errors import McpFailure
from .text import one_line

MESSAGE_BYTES = 16 * 1024 * 1024
"""Ceiling of one message of a server."""
CLOSED = "the connection was closed"
_WINDOW_SECONDS = 10.0
_MESSAGES_PER_WINDOW = 2_000
_GARBAGE_LINES = 1_000
_SHORTEST_SECRET = 6
"""What is shorter stands in too many texts to be told from them."""


class Link:
    """The state of one transport."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.started = False
        """Whether the server's process began."""
        self.reason = ""
        """Why it ended."""
        self.failure: McpFailure | None = None
        """What those hear who were waiting for an answer then, where the end was the client's own."""
        self.noise = ""
        """The first line that was no message; empty if none was."""
        self.tail: Callable[[], str] = str
        """The last of the server's standard error, where it has one."""
        self._secrets: set[str] = set()
        self._garbage = 0
        self._window = 0.0
        self._count = 0

    @property
    def gave_up(self) -> bool:
        """Whether the server's process began, and the end came from its side."""
        return self.started and self.reason not in ("", CLOSED)

    def end(self, reason: str, failure: McpFailure | None = None) -> None:
        """The transport is of no more use. The first reason stays."""
        if not self.ended.is_set():
            self.reason = reason
            self.failure = failure
            self.ended.set()

    def hide(self, *secrets: str) -> None:
        """The server is given these. What it says is shown without them: a server that repeats its
        token in an error would else write it into history."""
        words = {word for secret in secrets for word in (secret, *secret.split()[-1:])}
        self._secrets |= {word for word in words if len(word) >= _SHORTEST_SECRET}

    def shown(self, text: str) -> str:
        """The text without the secrets that the server was given."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "[secret]")
        return text

    def shown_within(self, value: Any) -> Any:
        """`shown` of every text in a JSON value."""
        match value:
            case str():
                return self.shown(value)
            case list():
                return [self.shown_within(item) for item in value]
            case dict():
                return {self.shown(key): self.shown_within(item) for key, item in value.items()}
            case _:
                return value

    def count(self) -> None:
        """A message came. A flood ends the transport: each costs time that other runs need."""
        now = time.monotonic()
        if now - self._window > _WINDOW_SECONDS:
            self._window, self._count = now, 0
        self._count += 1
        if self._count > _MESSAGES_PER_WINDOW:
            self.end(f"it sent over {_MESSAGES_PER_WINDOW:,} messages in {_WINDOW_SECONDS:.0f} s")

    def garbage(self, line: bytes) -> None:
        """Something came that is no message. Some servers log to standard output; a lot of it ends
        the transport."""
        self._garbage += 1
        self.noise = self.noise or one_line(line[:400].decode("utf-8", "replace"), 200)
        if self._garbage > _GARBAGE_LINES:
            self.end(f"it printed over {_GARBAGE_LINES:,} lines that are no MCP messages")
