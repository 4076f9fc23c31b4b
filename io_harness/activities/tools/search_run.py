"""Runs one search over the working copy, held like a command: ripgrep, or the stand-in in Python."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from io_harness import sandbox

from .beneath import Beneath
from .errors import CommandNotStarted, InvalidPattern, ToolError
from .process import interpreter_roots
from .python_search import ignored

SECONDS = 30.0
_MEMORY = 1024 * 1024 * 1024
_FALLBACK = Path(__file__).with_name("python_search.py")
_LONG_LINE = 256 * 1024
_KEPT_END = 4096
_MOST_SIBLINGS = 1000


@dataclass(frozen=True)
class SearchRequest:
    """What to search for, and where."""

    path: str
    """Resolved, relative to the workspace."""
    pattern: str | None = None
    """Regular expression; None lists files."""
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    ignored: bool = False
    """Whether files that `.gitignore` files name are searched too."""
    name_glob: str | None = None
    """Only files whose name matches; a filter before any further one."""
    name_regex: str | None = None
    """The same as a regular expression."""
    forced: bool = False
    """Search in `path` though a `.gitignore` above it ignores it."""


@dataclass(frozen=True)
class SearchEnd:
    stopped: str | None
    """The limit at which the search was stopped; None if it is complete."""
    unreadable: bool
    """Whether some files could not be read."""


def ripgrep() -> str | None:
    """The rg that came with the package, else the system's."""
    own = Path(sys.executable).with_name("rg")
    return str(own) if own.exists() else shutil.which("rg")


async def run_search(
    request: SearchRequest, root: Path, files: Beneath, take: Callable[[bytes], None]
) -> SearchEnd:
    """Hand each line of output to `take`, cut in the middle if it is too long to keep.

    Raises:
        InvalidPattern: the pattern or glob can't be read.
        CommandNotStarted: the sandbox failed.
    """
    program = ripgrep()
    argv: tuple[str, ...]
    if program is None:
        argv = (sys.executable, "-I", str(_FALLBACK), json.dumps(vars(request)))
    else:
        argv = (program, *_rg_options(request, files))
    splitter = LineSplitter(take, b"\0" if request.pattern is None else b"\n")
    plan = sandbox.Plan(
        argv=argv,
        cwd=root,
        workspace=root,
        mode="read_only",
        read_only_roots=(*interpreter_roots(), Path(argv[0]).parent, _FALLBACK.parent),
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"},
        limits=sandbox.Limits(
            wall_seconds=SECONDS, cpu_seconds=int(2 * SECONDS), memory_bytes=_MEMORY
        ),
    )
    try:
        done = await sandbox.run(plan, on_output=splitter.feed)
    except sandbox.SandboxError as error:
        raise CommandNotStarted(f"the sandbox could not run the search: {error}") from error
    splitter.finish()
    if done.cause == "exited" and splitter.complaint:
        raise InvalidPattern(splitter.complaint.decode(errors="replace").removeprefix("rg: "))
    if done.cause == "signalled" or (done.cause == "exited" and done.exit_code not in (0, 1, 2)):
        raise CommandNotStarted(f"the search ended with {done.exit_code or done.signal}")
    return SearchEnd(
        stopped=None if done.cause == "exited" else done.cause, unreadable=done.exit_code == 2
    )


def _rg_options(request: SearchRequest, files: Beneath) -> Iterator[str]:
    yield from ("--no-config", "--hidden", "--no-messages", "--sort", "path", "--no-require-git")
    # Nothing outside the copy says what is ignored, and of the inside only .gitignore.
    yield from ("--no-ignore-global", "--no-ignore-parent", "--no-ignore-exclude")
    yield from ("--no-ignore-dot", "--glob", "!.git")
    if request.ignored:
        yield "--no-ignore"
    if request.name_glob is not None:
        # Not --glob: a glob that includes also lifts what .gitignore excludes.
        yield from ("--type-add", f"chosen:{request.name_glob}", "--type", "chosen")
    if request.pattern is None:
        yield from ("--files", "--null")
    else:
        yield from ("--json", "--binary", "--crlf", "--context", str(request.context))
        yield from ("--fixed-strings",) if request.literal else ()
        yield from ("--ignore-case",) if request.ignore_case else ()
        yield from ("--regexp", request.pattern)
    if request.forced or request.ignored or request.path == ".":
        yield from ("--", f"./{request.path}" if request.path != "." else ".")
    else:
        # From the top, so that each .gitignore on the way counts, but into no other folder.
        for glob in _siblings(request.path, files):
            yield from ("--glob", glob)
        yield from ("--", ".")


def is_ignored(path: str, files: Beneath) -> bool:
    """Whether a folder is ignored by a `.gitignore` above it, itself or by a parent."""
    specs: list[tuple[str, GitIgnoreSpec]] = []
    folder = ""
    for name in path.split("/"):
        with (
            suppress(ToolError),
            files.place(f"{folder}.gitignore", follow=False) as place,
            os.fdopen(place.open_read(), encoding="utf-8", errors="replace") as file,
        ):
            specs.append((folder.rstrip("/"), GitIgnoreSpec.from_lines(file)))
        if ignored(f"{folder}{name}", specs, is_folder=True):
            return True
        folder += f"{name}/"
    return False


def _siblings(path: str, files: Beneath) -> Iterator[str]:
    folder = ""
    for name in path.split("/"):
        with files.directory(folder or ".") as (descriptor, _):
            names = os.listdir(descriptor)
        if len(names) <= _MOST_SIBLINGS:
            for other in sorted(names):
                if other != name:
                    yield "!/" + _quoted(f"{folder}{other}")
        folder += f"{name}/"


def _quoted(path: str) -> str:
    return "".join(f"\\{c}" if c in "\\*?[]{}!#" else c for c in path).rstrip("\n")


class LineSplitter:
    """Cuts a stream into records in constant memory. What is no record of a search is a complaint."""

    def __init__(self, take: Callable[[bytes], None], separator: bytes) -> None:
        self._take = take
        self._separator = separator
        self._record = bytearray()
        self.complaint = b""

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(self._separator)
        for part in whole:
            self._grow(part)
            self._end()
        self._grow(rest)

    def finish(self) -> None:
        """The stream has ended."""
        if self._record:
            self._end()

    def _grow(self, part: bytes) -> None:
        self._record += part
        if len(self._record) > 2 * _LONG_LINE:
            self._record[_LONG_LINE:-_KEPT_END] = b""

    def _end(self) -> None:
        record = bytes(self._record)
        self._record.clear()
        if record.startswith((b'{"', b"./")):
            self._take(record)
        elif len(self.complaint) < _KEPT_END:
            self.complaint += record + b"\n"
