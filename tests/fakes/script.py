"""What a fake provider is told to answer, one entry per request."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

_ids = itertools.count(1)


@dataclass(frozen=True)
class Call:
    """One tool call of a reply."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    """An object, or text that stands for it as it is: cut, or no JSON at all."""
    id: str = field(default_factory=lambda: f"call_{next(_ids)}")

    @property
    def raw(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments)


@dataclass(frozen=True)
class Cut:
    """How a stream ends before its time, after so many events."""

    after: int
    how: Literal["close", "reset", "stall", "error", "garbage"]
    """close: ends properly, as if complete; reset: the connection breaks; stall: silence; error: an
    error event of the protocol, then the end; garbage: an event that is not JSON, then the rest."""
    error: str = "overloaded"
    seconds: float = 60.0
    """Of a stall."""


@dataclass(frozen=True)
class Say:
    """A streamed reply, in the format of whatever API is asked."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    finish: FinishReason | None = None
    usage: Usage = field(default_factory=lambda: Usage(input=100, output=20))
    cut: Cut | None = None
    write_bytes: int = 4096
    """Bytes per write: 1 splits every code point and every CRLF."""
    pause: float = 0.0
    """Seconds between writes."""

    @property
    def finish_reason(self) -> FinishReason:
        return self.finish or ("tool_use" if self.calls else "stop")


@dataclass(frozen=True)
class Fail:
    """An error response before any stream."""

    status: int
    code: str = "error"
    message: str = "refused by the fake"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """The whole body, instead of the protocol's own form."""


@dataclass(frozen=True)
class Raw:
    """A 200 response with exactly this body."""

    body: bytes
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Accepts the request and breaks the connection without an answer."""


Answer = Say | Fail | Raw | Hang
