"""Finds files by name, and lines by pattern."""

import base64
import json
import os
import re
import stat
from collections import deque
from dataclasses import replace

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool, Word
from .context import ToolContext
from .glob import glob_regex
from .search_run import SearchEnd, SearchRequest, is_ignored, run_search

_CLIPPED = 240
_BEFORE_MATCH = 80
_SHOWN_BINARIES = 5
_LINE_NUMBER = re.compile(rb'"line_number":(\d+)')


class FindArgs(Args):
    glob: Word
    """Such as *.py, test_*.{ts,tsx} or src/**/*.c."""
    path: str = "."
    ignored: bool = False
    """Also files that .gitignore excludes."""
    offset: int = Field(0, ge=0)
    limit: int = Field(200, ge=1, le=1000)


class Find(Tool[FindArgs]):
    name = "find"
    description = "Find files by glob, hidden ones too."
    Args = FindArgs
    effect = "read"

    async def run(self, args: FindArgs, ctx: ToolContext) -> Observation:
        request, note = _request(args.path, args.glob, args.ignored, ctx)
        chosen = _Chosen(args.glob, request.path, ctx)
        page: list[str] = []
        total = 0

        def take(record: bytes) -> None:
            nonlocal total
            path = os.fsdecode(record[2:])
            if not chosen(path):
                return
            if args.offset <= total < args.offset + args.limit:
                page.append(_shown(path))
            total += 1

        end = await run_search(request, ctx.root, ctx.files, take)
        notes = [_total(total, "file", end), *_paging(args.offset, len(page), total)]
        return _observe(ctx, page, [*notes, *_gaps(end), *chosen.notes(), *note])


class GrepArgs(Args):
    pattern: Word
    """Regular expression, matched line by line."""
    path: str = "."
    glob: Word | None = None
    """Only files whose name or path matches, such as *.py."""
    literal: bool = False
    """Take `pattern` as plain text."""
    ignore_case: bool = False
    context: int = Field(0, ge=0, le=10)
    """Lines to show around each match."""
    ignored: bool = False
    offset: int = Field(0, ge=0)
    limit: int = Field(100, ge=1, le=1000)


class Grep(Tool[GrepArgs]):
    name = "grep"
    description = "Search the contents of files, hidden ones too."
    Args = GrepArgs
    effect = "read"

    async def run(self, args: GrepArgs, ctx: ToolContext) -> Observation:
        request, note = _request(args.path, args.glob, args.ignored, ctx)
        request = replace(
            request,
            pattern=args.pattern,
            literal=args.literal,
            ignore_case=args.ignore_case,
            context=args.context,
        )
        matches = _Matches(args, _Chosen(args.glob, request.path, ctx))
        end = await run_search(request, ctx.root, ctx.files, matches.take)
        return _observe(ctx, matches.page, [*matches.notes(end), *note])


def _request(
    path: str, glob: str | None, ignored: bool, ctx: ToolContext
) -> tuple[SearchRequest, list[str]]:
    with ctx.files.place(path) as place:
        is_file = stat.S_ISREG(place.existing().st_mode)
        resolved = place.path
    ctx.check_read(resolved)
    named = resolved != "." and not is_file and not ignored and is_ignored(resolved, ctx.files)
    name = (glob or "").rpartition("/")[2]
    filtered = name and name.strip("*")
    request = SearchRequest(
        path=resolved,
        ignored=ignored,
        forced=is_file or named,
        name_glob=name if filtered else None,
        name_regex=glob_regex(name).pattern if filtered else None,
    )
    return request, [
        f"{path} is ignored by .gitignore, and searched as it was named"
    ] if named else []


class _Chosen:
    """Which of the paths that a search meets are meant, and may be shown."""

    def __init__(self, glob: str | None, path: str, ctx: ToolContext) -> None:
        self._regex = None if glob is None else glob_regex(glob)
        self._prefix = "" if path == "." else f"{path}/"
        self._gate = ctx.gate
        self._withheld = 0

    def __call__(self, path: str) -> bool:
        if self._prefix and not f"{path}/".startswith(self._prefix):
            return False
        relative = path.removeprefix(self._prefix)
        if self._regex and not (self._regex.match(relative) or self._regex.match(path)):
            return False
        if self._gate.readable(path):
            return True
        self._withheld += 1
        return False

    def notes(self) -> list[str]:
        return [f"{self._withheld} files withheld by the policy"] if self._withheld else []


class _Matches:
    """Takes the events of a search file by file, and keeps one page of matching lines."""

    def __init__(self, args: GrepArgs, chosen: _Chosen) -> None:
        self._page = range(args.offset, args.offset + args.limit)
        self._context = args.context
        self._chosen = chosen
        self._file: str | None = None
        """Whose events these are; None while they are passed over."""
        self._lines: list[str] = []
        self._in_file = 0
        self._before: deque[bytes] = deque(maxlen=args.context)
        self._after = 0
        self._total = self._shown = self._files = 0
        self._binaries: list[str] = []
        self.page: list[str] = []

    def take(self, record: bytes) -> None:
        if record.startswith(b'{"type":"match"'):
            if self._file is not None:
                self._match(record)
        elif record.startswith(b'{"type":"context"'):
            if self._file is not None:
                self._around(record)
        elif record.startswith(b'{"type":"begin"'):
            path = os.fsdecode(_bytes_of(json.loads(record)["data"]["path"])).removeprefix("./")
            self._file = path if self._chosen(path) else None
        elif record.startswith(b'{"type":"end"'):
            self._close(binary=json.loads(record)["data"]["binary_offset"] is not None)

    def _match(self, record: bytes) -> None:
        number = self._total + self._in_file
        self._in_file += 1
        if number in self._page:
            self._lines += [_line(earlier, "-") for earlier in self._before]
            self._lines.append(_line(record, ":"))
        self._before.clear()
        self._after = self._context if number in self._page else 0

    def _around(self, record: bytes) -> None:
        if self._after:
            self._lines.append(_line(record, "-"))
            self._after -= 1
        else:
            self._before.append(record)

    def _close(self, *, binary: bool) -> None:
        if self._file is not None and binary:
            self._binaries.append(_shown(self._file))
        elif self._file is not None:
            self._files += 1
            first = max(self._total, self._page.start)
            self._total += self._in_file
            self._shown += max(min(self._total, self._page.stop) - first, 0)
            self.page += [_shown(self._file), *self._lines] if self._lines else []
        self._file, self._lines, self._in_file, self._after = None, [], 0, 0
        self._before.clear()

    def notes(self, end: SearchEnd) -> list[str]:
        """What there is besides the page. Call it when the search has ended."""
        self._close(binary=False)  # a search that was stopped leaves its last file open
        notes = [f"{_total(self._total, 'matching line', end)} in {self._files:,} files"]
        notes += _paging(self._page.start, self._shown, self._total)
        if self._binaries:
            names = ", ".join(self._binaries[:_SHOWN_BINARIES])
            more = ", ..." if len(self._binaries) > _SHOWN_BINARIES else ""
            notes.append(f"{len(self._binaries)} binary files match, not shown: {names}{more}")
        return [*notes, *_gaps(end), *self._chosen.notes()]


def _total(count: int, what: str, end: SearchEnd) -> str:
    least = "" if end.stopped is None else "at least "
    return f"{least}{count:,} {what}{'' if count == 1 else 's'}"


def _gaps(end: SearchEnd) -> list[str]:
    """Why an answer may not be all there is."""
    gaps = ["some files could not be read"] if end.unreadable else []
    if end.stopped is not None:
        gaps.append(f"stopped at the limit of {end.stopped}: search a smaller folder")
    return gaps


def _paging(offset: int, shown: int, total: int) -> list[str]:
    if shown == total:
        return []
    if offset + shown >= total:
        return [f"shown from {offset}"]
    return [f"shown from {offset}; next offset {offset + shown}"]


def _observe(ctx: ToolContext, page: list[str], notes: list[str]) -> Observation:
    return ctx.outputs.observe("\n".join([*page, f"[{'; '.join(notes)}]"]))


def _line(record: bytes, mark: str) -> str:
    """`number: text`, clipped around the match."""
    try:
        data = json.loads(record)["data"]
    except ValueError:  # cut by the splitter
        number = _LINE_NUMBER.search(record)
        shown = number[1].decode() if number else "?"
        return f"{shown}{mark} [a line of more than 256 KiB]"
    raw = _bytes_of(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    submatches = data.get("submatches") or [{"start": 0}]
    before = raw[: submatches[0]["start"]].decode("utf-8", "backslashreplace")
    text = raw.decode("utf-8", "backslashreplace")
    begin = max(len(before) - _BEFORE_MATCH, 0) if len(text) > _CLIPPED else 0
    clipped = text[begin : begin + _CLIPPED]
    head = "..." if begin else ""
    tail = "..." if begin + _CLIPPED < len(text) else ""
    return f"{data['line_number']}{mark} {head}{clipped}{tail}"


def _bytes_of(data: dict[str, str]) -> bytes:
    return data["text"].encode() if "text" in data else base64.b64decode(data["bytes"])


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
