"""Hunks of a patch, whatever its notation, and their application to the lines of a text."""

from dataclasses import dataclass
from typing import Literal

from .errors import AmbiguousMatch, InvalidPatch, NoMatch
from .splice import Line
from .textfile import TextFile, join_lines, split_lines

_SHOWN_MATCHES = 10


@dataclass(frozen=True)
class HunkLine:
    kind: Literal[" ", "-", "+"]
    text: str
    """Without the line's LF. A CR at its end is a part of it."""
    no_newline: bool = False
    """Whether the patch says that no newline follows."""


@dataclass(frozen=True)
class Hunk:
    lines: tuple[HunkLine, ...]
    start: int | None = None
    """Line of the old text at which the hunk says it begins, from 1. For a hunk without old lines, the
    line after which it inserts."""
    anchors: tuple[str, ...] = ()
    """Lines that come before the hunk, in this order."""
    at_end: bool = False

    @property
    def old(self) -> tuple[HunkLine, ...]:
        return tuple(line for line in self.lines if line.kind != "+")


@dataclass(frozen=True)
class FilePatch:
    """What a patch does to one file."""

    kind: Literal["update", "add", "delete"]
    path: str
    hunks: tuple[Hunk, ...] = ()
    new_path: str | None = None
    executable: bool | None = None
    """None: as it is."""


def added_text(patch: FilePatch) -> str:
    """The content of an added file."""
    lines = [line for hunk in patch.hunks for line in hunk.lines]
    if any(line.kind != "+" for line in lines):
        raise InvalidPatch(f"{patch.path} is new, so each of its lines must begin with '+'")
    return "".join(line.text + ("" if line.no_newline else "\n") for line in lines)


def apply_hunks(file: TextFile, hunks: tuple[Hunk, ...]) -> str:
    """The text after all hunks.

    Raises:
        NoMatch, AmbiguousMatch, InvalidPatch: one of them doesn't fit.
    """
    exact = any(line.text.endswith("\r") for hunk in hunks for line in hunk.lines)
    if exact:
        try:
            return _Application(file, exact=True).run(hunks)
        except NoMatch:
            # The CRs came with the patch's transport; the file has other line ends.
            hunks = tuple(_without_cr(hunk) for hunk in hunks)
    return _Application(file, exact=False).run(hunks)


def _without_cr(hunk: Hunk) -> Hunk:
    lines = tuple(
        HunkLine(line.kind, line.text.removesuffix("\r"), line.no_newline) for line in hunk.lines
    )
    return Hunk(lines, hunk.start, hunk.anchors, hunk.at_end)


class _Application:
    def __init__(self, file: TextFile, *, exact: bool) -> None:
        self._file = file
        self._exact = exact
        """Whether the patch's own CRs say which line ends new lines have."""
        self._old = split_lines(file.text)
        # What a hunk's line must be to match.
        self._keys = [
            content + "\r" if exact and end == "\r\n" else content for content, end in self._old
        ]
        self._line_end = file.line_end
        self._new: list[Line] = []
        self._done = 0
        self._last_is_added = False

    def run(self, hunks: tuple[Hunk, ...]) -> str:
        for number, hunk in enumerate(hunks, 1):
            at = self._locate(hunk, number)
            self._new += self._old[self._done : at]
            self._done = at + len(hunk.old)
            self._new += self._rewritten(hunk, at)
        self._new += self._old[self._done :]
        marked = any(line.no_newline for hunk in hunks for line in hunk.lines)
        return join_lines(self._ended(marked))

    def _rewritten(self, hunk: Hunk, at: int) -> list[Line]:
        result: list[Line] = []
        replaced: list[Line] = []
        for line in hunk.lines:
            if line.kind != "-":
                self._last_is_added = line.kind == "+"
            if line.kind == " ":
                replaced.clear()
                result.append(self._old[at])
            elif line.kind == "-":
                replaced.append(self._old[at])
            else:
                result.append(self._added(line, replaced.pop(0)[1] if replaced else ""))
                continue
            at += 1
        return result

    def _added(self, line: HunkLine, replaced_end: str) -> Line:
        if self._exact:
            if line.text.endswith("\r") and not line.no_newline:
                return line.text[:-1], "\r\n"
            return line.text, "" if line.no_newline else "\n"
        return line.text, "" if line.no_newline else replaced_end or self._line_end

    def _ended(self, marked: bool) -> list[Line]:
        """Each line but the last has an end. The last keeps the file's state, unless the patch itself
        marks it."""
        *body, last = self._new or [("", "")]
        ended = [(content, end or self._line_end) for content, end in body]
        bare = bool(self._old) and self._old[-1][1] == ""
        if self._done == len(self._old) and self._last_is_added and bare and not marked:
            last = (last[0], "")
        return [*ended, last]

    def _locate(self, hunk: Hunk, number: int) -> int:
        """Index of the hunk's first old line."""
        begin, scope_end = self._done, len(self._old)
        for anchor in hunk.anchors:
            begin = self._anchor(anchor, begin, number) + 1
            scope_end = self._scope_end(begin)
        wanted = [line.text for line in hunk.old]
        if not wanted:
            return self._insertion(hunk, begin, number)
        found = self._matches(wanted, begin)
        if hunk.at_end:
            found = [at for at in found if at + len(wanted) == len(self._old)]
        if hunk.start is not None and hunk.start - 1 in found:
            return hunk.start - 1
        inside = [at for at in found if at < scope_end] if hunk.anchors else found
        candidates = inside or found
        if len(candidates) == 1:
            return candidates[0]
        shown = self._file.shown
        if candidates:
            lines = ", ".join(str(at + 1) for at in candidates[:_SHOWN_MATCHES])
            raise AmbiguousMatch(
                f"hunk {number} fits {shown} at {len(candidates)} places (lines {lines}); "
                "add context lines"
            )
        raise NoMatch(f"hunk {number} does not fit {shown}{self._why(wanted, begin)}")

    def _matches(self, wanted: list[str], begin: int) -> list[int]:
        last = len(self._keys) - len(wanted)
        first = wanted[0]
        return [
            at
            for at in range(begin, last + 1)
            if self._keys[at] == first and self._keys[at : at + len(wanted)] == wanted
        ]

    def _insertion(self, hunk: Hunk, begin: int, number: int) -> int:
        if hunk.anchors:
            return begin
        if hunk.at_end or not self._old:
            return len(self._old)
        if hunk.start is not None and self._done <= hunk.start <= len(self._old):
            return hunk.start
        raise InvalidPatch(
            f"hunk {number} of {self._file.shown} has no line that is in the file, so its place is "
            "not known; add context lines"
        )

    def _anchor(self, anchor: str, begin: int, number: int) -> int:
        contents = [content for content, _ in self._old]
        found = [at for at in range(begin, len(contents)) if contents[at] == anchor]
        if not found:
            wanted = anchor.strip()
            found = [at for at in range(begin, len(contents)) if contents[at].strip() == wanted]
        if len(found) == 1:
            return found[0]
        shown = self._file.shown
        if not found:
            raise NoMatch(f"hunk {number}: {shown} has no line {anchor!r} after line {begin}")
        lines = ", ".join(str(at + 1) for at in found[:_SHOWN_MATCHES])
        raise AmbiguousMatch(f"hunk {number}: {anchor!r} is in {shown} at lines {lines}")

    def _scope_end(self, begin: int) -> int:
        """Where the block of the anchor before `begin` ends: at the next line indented no deeper."""
        depth = _indent(self._old[begin - 1][0])
        for at in range(begin, len(self._old)):
            content = self._old[at][0]
            if content.strip() and _indent(content) <= depth:
                return at
        return len(self._old)

    def _why(self, wanted: list[str], begin: int) -> str:
        """The place where most of the hunk's first lines fit, and the line that doesn't."""
        best, place = 0, -1
        for at in range(begin, len(self._keys)):
            fits = 0
            while fits < min(len(wanted), len(self._keys) - at) and (
                self._keys[at + fits] == wanted[fits]
            ):
                fits += 1
            if fits > best:
                best, place = fits, at
        if place < 0:
            return f": no line (after line {begin}) is {wanted[0][:200]!r}"
        if place + best == len(self._keys):
            return f": the file ends after line {place + best}, where {wanted[best][:200]!r} was wanted"
        found = self._keys[place + best][:200]
        return f": line {place + best + 1} is {found!r}, not {wanted[best][:200]!r}"


def _indent(content: str) -> int:
    expanded = content.expandtabs()
    return len(expanded) - len(expanded.lstrip())
