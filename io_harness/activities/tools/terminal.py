"""What a terminal would show of a command's raw output in the end: escape sequences gone, lines that
were drawn over shown once, other bytes escaped. Works piece by piece in constant memory."""

import codecs
import re

_HELD_ROWS = 64  # how far up a multi-line progress display can redraw
_LONG_ROW = 64 * 1024
_LONG_ESCAPE = 4096
_TEXT = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]"
_PLAIN = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f]*\Z")
# A CSI, an OSC/DCS/APC/PM string up to its terminator, a charset choice, or a two-character sequence.
_ESCAPE = (
    r"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\^-~]"
)
_TOKEN = re.compile(
    rf"(?P<text>{_TEXT}+)|(?P<line>\r*\n)|(?P<cr>\r+)|(?P<bs>\x08+)|{_ESCAPE}"
    r"|(?P<other>[\s\S])"
)
# Colours and strings change nothing that is shown, and what is drawn over on one line is never seen:
# both go before the slow way through single tokens.
_INVISIBLE = re.compile(r"\x1b\[[\d;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_NEVER_SEEN = re.compile(rf"(?:{_TEXT}|\r)*\Z")
_DRAWN = re.compile(_TEXT)
_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\r+)\Z")
_CSI = re.compile(r"(\d*)[\d;:]*([A-Za-z])\Z")


class Terminal:
    """Feed it bytes; it returns the text that can't change any more, as UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._pending = ""
        self._rows = [""]
        self._row = 0
        self._overwrite = False  # a carriage return came: the next text replaces the row

    def feed(self, data: bytes) -> bytes:
        text = self._pending + self._decoder.decode(data)
        self._pending = ""
        unfinished = _UNFINISHED.search(text)
        if unfinished and len(text) - unfinished.start() <= _LONG_ESCAPE:
            text, self._pending = text[: unfinished.start()], text[unfinished.start() :]
        bare = _INVISIBLE.sub("", text)
        if (
            "\x1b" not in bare
        ):  # or else a stray escape could join with what is behind a removed one
            text = bare
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            text = "\n".join(map(_last_drawn, text.split("\n")))
        at_end = self._row == len(self._rows) - 1 and not self._overwrite
        if at_end and _PLAIN.match(text):
            return self._append(text)
        settled: list[str] = []
        for token in _TOKEN.finditer(text):
            self._take(token)
            if len(self._rows) > _HELD_ROWS or len(self._rows[self._row]) > _LONG_ROW:
                self._settle(settled)
        return "".join(settled).encode()

    def finish(self) -> bytes:
        """What is left when the command has ended."""
        rest = self._pending + self._decoder.decode(b"", final=True)
        self._pending = ""
        for token in _TOKEN.finditer(rest):
            self._take(token)
        text = "\n".join(self._rows)
        self._rows, self._row = [""], 0
        return text.encode()

    def _append(self, text: str) -> bytes:
        whole = "\n".join(self._rows) + text
        *settled, last = whole.rsplit("\n", _HELD_ROWS)[:1], whole
        head = settled[0][0] if whole.count("\n") >= _HELD_ROWS else None
        if head is None:
            self._rows = last.split("\n")
            out = ""
        else:
            self._rows = last[len(head) + 1 :].split("\n")
            out = head + "\n"
        if len(self._rows[-1]) > _LONG_ROW:
            out += "\n".join(self._rows)
            self._rows = [""]
        self._row = len(self._rows) - 1
        return out.encode()

    def _settle(self, settled: list[str]) -> None:
        while len(self._rows) > _HELD_ROWS:
            settled.append(self._rows.pop(0) + "\n")
            self._row = max(self._row - 1, 0)
        if len(self._rows[self._row]) > _LONG_ROW and self._row == len(self._rows) - 1:
            settled.append("\n".join(self._rows))
            self._rows, self._row = [""], 0

    def _take(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "text":
                self._write(token[0])
            case "line":
                self._down()
            case "cr":
                self._overwrite = True
            case "bs":
                row = self._rows[self._row]
                self._rows[self._row] = row[: max(len(row) - len(token[0]), 0)]
            case "csi":
                self._control(token["csi"])
            case "other":
                if token[0] not in "\x07\x1b":  # the bell, and an escape that begins nothing
                    self._write(f"\\x{ord(token[0]):02x}")
            case _:
                pass

    def _write(self, text: str) -> None:
        if self._overwrite:
            self._rows[self._row] = ""
            self._overwrite = False
        self._rows[self._row] += text

    def _down(self) -> None:
        self._overwrite = False
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
        else:
            self._overwrite = True

    def _control(self, sequence: str) -> None:
        parsed = _CSI.match(sequence)
        if parsed is None:
            return
        count = min(int(parsed[1] or "1"), _HELD_ROWS)
        match parsed[2]:
            case "A" | "F":
                self._row = max(self._row - max(count, 1), 0)
                self._overwrite = True
            case "B" | "E":
                self._row = min(self._row + max(count, 1), len(self._rows) - 1)
                self._overwrite = True
            case "G" if parsed[1] in ("", "1"):
                self._overwrite = True
            case "K" if parsed[1] == "2" or self._overwrite:
                self._rows[self._row] = ""
            case "J" if parsed[1] in ("", "0"):
                del self._rows[self._row + 1 :]
            case _:
                pass


def _last_drawn(line: str) -> str:
    """A line without what a later part of it draws over."""
    at = line.rfind("\r", 0, len(line.rstrip("\r")))
    hidden = at > 0 and _NEVER_SEEN.match(line[:at]) and _DRAWN.match(line, at + 1)
    return line[at:] if hidden else line
