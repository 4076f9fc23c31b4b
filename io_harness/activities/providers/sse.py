"""Server-sent events, decoded as bytes arrive.

Follows the parsing rules of the HTML standard (section 9.2.6): UTF-8 with an optional byte order
mark, lines that end in CR, LF or CRLF, comments, several data lines per event, and an event only
when its blank line has come. A chunk may end anywhere, also inside a code point or a CRLF.
"""

import codecs
from dataclasses import dataclass


@dataclass(frozen=True)
class ServerEvent:
    data: str
    event: str = "message"


class SseDecoder:
    """Feed it chunks; it returns the events that they complete.

    What is left over when the stream ends is an incomplete event and is never dispatched.
    """

    def __init__(self) -> None:
        # The standard decodes with replacement characters; JSON inside then fails to parse, or not.
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._at_start = True
        self._after_cr = False
        self._line: list[str] = []
        self._data: list[str] = []
        self._event = ""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        text = self._utf8.decode(chunk)
        if not text:
            return []
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._after_cr:
            text = text.removeprefix("\n")  # second half of a CRLF that a chunk's end split
        self._after_cr = text.endswith("\r")
        # Only CR and LF end a line: str.splitlines would also split at U+2028 inside JSON.
        *complete, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        events: list[ServerEvent] = []
        for piece in complete:
            self._line.append(piece)
            line = "".join(self._line)
            self._line.clear()
            event = self._take(line)
            if event is not None:
                events.append(event)
        if rest:
            self._line.append(rest)
        return events

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None  # a comment, an id, a retry interval, or a field of no meaning

    def _dispatch(self) -> ServerEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        if not data:
            return None
        return ServerEvent(data="\n".join(data), event=event or "message")
