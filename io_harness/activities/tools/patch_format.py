"""Reads patches: unified diffs (plain and git's) and the V4A form (`*** Begin Patch`)."""

import re
from collections.abc import Callable

from .errors import InvalidPatch
from .hunks import FilePatch, Hunk, HunkLine

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_GIT_HEADERS = (
    "old mode",
    "new mode",
    "new file mode",
    "deleted file mode",
    "rename from",
    "rename to",
    "copy from",
    "similarity index",
    "dissimilarity index",
    "index",
)
_SIGNATURE = "-- "  # what `git format-patch` ends with


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch, in order.

    Raises:
        InvalidPatch: naming the line that can't be read.
    """
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].startswith("```"):
        lines = lines[1:-1]
    begins = [n for n, line in enumerate(lines) if line.rstrip() == "*** Begin Patch"]
    parsed = _V4A(lines).parse(begins[0] + 1) if begins else _Unified(lines).parse()
    if not parsed:
        raise InvalidPatch(
            "no file in it; give a unified diff with '--- a/path' and '+++ b/path', or the form "
            "'*** Begin Patch'"
        )
    return tuple(parsed)


class _Lines:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def _now(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _next_is(self, prefix: str) -> bool:
        return self._at + 1 < len(self._lines) and self._lines[self._at + 1].startswith(prefix)

    def _fail(self, why: str) -> InvalidPatch:
        shown = "the end" if self._now is None else repr(self._now[:120])
        return InvalidPatch(f"line {self._at + 1} of the patch ({shown}): {why}")


class _Unified(_Lines):
    def parse(self) -> list[FilePatch]:
        files: list[FilePatch] = []
        while (line := self._now) is not None:
            if line.startswith("diff --git "):
                files.append(self._git_file())
            elif line.startswith("--- ") and self._next_is("+++ "):
                files.append(self._file({}))
            elif line.startswith("@@ "):
                raise self._fail("a hunk without '--- a/path' and '+++ b/path' before it")
            else:
                self._at += 1  # a message, an index line
        return files

    def _git_file(self) -> FilePatch:
        self._at += 1
        header: dict[str, str] = {}
        while (line := self._now) is not None:
            if line.startswith(("Binary files ", "GIT binary patch")):
                raise self._fail("binary patches are not applied")
            key = next((k for k in _GIT_HEADERS if line.startswith(f"{k} ")), None)
            if key is None:
                break
            header[key] = line[len(key) + 1 :].rstrip("\r")
            self._at += 1
        if "copy from" in header:
            raise self._fail("copies are not applied; add the new file")
        return self._file(header)

    def _file(self, header: dict[str, str]) -> FilePatch:
        old, new = self._names(header)
        for key in ("old mode", "new mode", "new file mode", "deleted file mode"):
            if header.get(key, "100644") not in ("100644", "100755"):
                raise self._fail(f"{key} {header[key]} is no ordinary file")
        mode = header.get("new mode") or header.get("new file mode")
        executable = None if mode is None else mode == "100755"
        hunks = tuple(self._hunks())
        if old is None:
            assert new is not None
            return FilePatch("add", new, hunks, executable=executable)
        if new is None:
            return FilePatch("delete", old, hunks)
        if not hunks and old == new and executable is None:
            raise self._fail(f"no hunk for {old}")
        renamed = new if new != old else None
        return FilePatch("update", old, hunks, renamed, executable)

    def _names(self, header: dict[str, str]) -> tuple[str | None, str | None]:
        line = self._now
        if line is not None and line.startswith("--- ") and self._next_is("+++ "):
            old, new = _name(line[4:]), _name(self._lines[self._at + 1][4:])
            self._at += 2
            prefixed = all(n is None or n.startswith(p) for n, p in ((old, "a/"), (new, "b/")))
            if prefixed:
                old, new = old and old[2:], new and new[2:]
            if old is None and new is None:
                raise self._fail("both names are /dev/null")
            return old, new
        if "rename from" in header and "rename to" in header:
            return _name(header["rename from"]), _name(header["rename to"])
        both = re.fullmatch(r"diff --git a/(.+) b/\1", self._header_line().rstrip("\r"))
        if both is None:
            raise self._fail("expected '--- a/path' and '+++ b/path'")
        if "new file mode" in header:
            return None, both[1]
        return both[1], None if "deleted file mode" in header else both[1]

    def _header_line(self) -> str:
        before = self._at - 1
        while not self._lines[before].startswith("diff --git "):
            before -= 1
        return self._lines[before]

    def _hunks(self) -> list[Hunk]:
        hunks: list[Hunk] = []
        while (line := self._now) is not None and line.startswith("@@"):
            numbers = _HUNK.match(line)
            self._at += 1
            if numbers is None:
                hunks.append(Hunk(tuple(self._body(0, 0))))
                continue
            old, new = (int(n) if n is not None else 1 for n in (numbers[2], numbers[4]))
            hunks.append(Hunk(tuple(self._body(old, new)), start=int(numbers[1])))
        return hunks

    def _body(self, old: int, new: int) -> list[HunkLine]:
        """Lines up to the counts, and further ones as long as they can be nothing else: models
        miscount, and what is matched is the text."""
        body: list[HunkLine] = []
        while (line := self._now) is not None:
            wanted = old > 0 or new > 0
            header = line.startswith("--- ") and self._next_is("+++ ")
            if not wanted and (line in ("", "\r") or line.rstrip("\r") == _SIGNATURE or header):
                break
            if line.startswith("\\"):
                if not body:
                    raise self._fail("nothing before it")
                body[-1] = HunkLine(body[-1].kind, body[-1].text, no_newline=True)
                self._at += 1
                continue
            parsed = _body_line(line)
            if parsed is None:
                break
            body.append(parsed)
            old -= parsed.kind != "+"
            new -= parsed.kind != "-"
            self._at += 1
        if not body:
            raise self._fail("a hunk without lines")
        return body


class _V4A(_Lines):
    def parse(self, at: int) -> list[FilePatch]:
        self._at = at
        files: list[FilePatch] = []
        parsers: dict[str, Callable[[str], FilePatch]] = {
            "*** Update File: ": self._update,
            "*** Add File: ": self._add,
            "*** Delete File: ": lambda path: FilePatch("delete", path),
        }
        while (line := self._now) is not None:
            stripped = line.rstrip("\r ")
            if stripped == "*** End Patch":
                return files
            for prefix, parser in parsers.items():
                if line.startswith(prefix):
                    self._at += 1
                    files.append(parser(stripped[len(prefix) :].strip()))
                    break
            else:
                if stripped:
                    raise self._fail(f"expected one of {', '.join(parsers)}or *** End Patch")
                self._at += 1
        raise self._fail("'*** End Patch' is missing, so the patch may have been cut")

    def _add(self, path: str) -> FilePatch:
        lines: list[HunkLine] = []
        while (line := self._now) is not None and not line.startswith("*** "):
            if not line.startswith("+"):
                raise self._fail("each line of an added file begins with '+'")
            lines.append(HunkLine("+", line[1:]))
            self._at += 1
        return FilePatch("add", path, (Hunk(tuple(lines)),) if lines else ())

    def _update(self, path: str) -> FilePatch:
        moved: str | None = None
        if (line := self._now) is not None and line.startswith("*** Move to: "):
            moved = line.removeprefix("*** Move to: ").strip()
            self._at += 1
        hunks: list[Hunk] = []
        anchors: list[str] = []
        while (line := self._now) is not None and not line.startswith("*** "):
            if line.startswith("@@"):
                anchor = line[2:].removeprefix(" ").rstrip("\r")
                anchors += [anchor] if anchor.strip() else []
                self._at += 1
                continue
            hunks.append(self._section(tuple(anchors)))
            anchors.clear()
        if anchors or not (hunks or moved):
            raise self._fail(f"no lines for {path}")
        return FilePatch("update", path, tuple(hunks), moved)

    def _section(self, anchors: tuple[str, ...]) -> Hunk:
        lines: list[HunkLine] = []
        while (line := self._now) is not None and not line.startswith(("@@", "*** ")):
            parsed = _body_line(line)
            if parsed is None:
                raise self._fail("expected a line that begins with ' ', '-', '+' or '@@'")
            lines.append(parsed)
            self._at += 1
        while lines and lines[-1] == HunkLine(" ", ""):
            lines.pop()  # most often a blank line between sections; less context is still exact
        at_end = line is not None and line.rstrip("\r ") == "*** End of File"
        if at_end:
            self._at += 1
        return Hunk(tuple(lines), anchors=anchors, at_end=at_end)


def _body_line(line: str) -> HunkLine | None:
    if line.startswith(" "):
        return HunkLine(" ", line[1:])
    if line.startswith("-"):
        return HunkLine("-", line[1:])
    if line.startswith("+"):
        return HunkLine("+", line[1:])
    # An empty context line that has lost its blank.
    return HunkLine(" ", line) if line in ("", "\r") else None


def _name(written: str) -> str | None:
    """A path as it stands after `---`, `+++` or `rename`; None for /dev/null."""
    written = written.rstrip("\r")
    if written.startswith('"'):
        return _unquoted(written)
    name = written.split("\t")[0].rstrip(" ")
    return None if name == "/dev/null" else name


def _unquoted(written: str) -> str:
    """git's C-style quoting: bytes beyond ASCII as octal escapes."""
    found = re.match(r'"((?:[^"\\]|\\.)*)"', written)
    if found is None:
        raise InvalidPatch(f"the quoted name {written[:200]} has no end")

    def byte(escape: re.Match[str]) -> str:
        code = escape[1]
        value = int(code, 8) if code.isdigit() else _ESCAPES.get(code, ord(code[0]))
        return chr(value & 0xFF)

    inner = found[1].encode().decode("latin-1")
    raw = re.sub(r"\\([0-7]{1,3}|.)", byte, inner, flags=re.DOTALL)
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")
