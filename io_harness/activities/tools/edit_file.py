"""Replaces an exact text in one file."""

from itertools import pairwise

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .blocking import in_thread
from .context import ToolContext
from .errors import AmbiguousMatch, EmptyText, IdenticalText, NoMatch
from .loading import encoded_new, load, version_of, write_wanted
from .splice import Normal, replacement
from .textfile import TextFile, decode

_SHOWN_MATCHES = 20


class EditFileArgs(Args):
    path: str
    old: str
    """Exact text to replace, without line numbers."""
    new: str
    expected_count: int = Field(1, ge=1)
    """How often `old` occurs; all are replaced."""
    if_version: str | None = None


class EditFile(Tool[EditFileArgs]):
    name = "edit_file"
    description = (
        "Replace an exact text in a file. `old` must be unique, or occur expected_count times."
    )
    Args = EditFileArgs
    effect = "write"

    async def run(self, args: EditFileArgs, ctx: ToolContext) -> Observation:
        return await in_thread(lambda: self._edit(args, ctx))

    def _edit(self, args: EditFileArgs, ctx: ToolContext) -> Observation:
        with ctx.files.place(args.path) as place:
            loaded = load(place, ctx, args.if_version)
            file = decode(loaded.data, args.path)
            text, lines = substitute(file, args.old, args.new, args.expected_count)
            data = encoded_new(file, text)
            ctx.require(write_wanted(place.path, loaded.data, data))
            place.replace(data, loaded.status)
        where = ", ".join(str(line) for line in lines[:_SHOWN_MATCHES])
        return Observation(text=f"edited {args.path} at line {where}; version {version_of(data)}")


def substitute(file: TextFile, old: str, new: str, count: int) -> tuple[str, list[int]]:
    """The text with `old` replaced by `new`, and the lines at which that happened.

    Raises:
        EmptyText, IdenticalText, NoMatch, AmbiguousMatch: nothing is replaced.
    """
    if not old:
        raise EmptyText(
            "`old` is empty; to insert, give a line that is there and repeat it in `new`"
        )
    old, new = _as_model_writes(old), _as_model_writes(new)
    if old == new:
        raise IdenticalText("`old` and `new` are the same text (line ends are kept as they are)")
    normal = Normal(file.text)
    found = _occurrences(normal.text, old)
    lines = [normal.line_number(position) for position in found[:_SHOWN_MATCHES]]
    if not found:
        raise NoMatch(f"`old` does not occur in {file.shown}{_near(normal.text, old)}")
    if len(found) != count:
        more = ", ..." if len(found) > len(lines) else ""
        where = ", ".join(map(str, lines))
        raise AmbiguousMatch(
            f"`old` occurs {len(found)} times in {file.shown}, not {count} (lines {where}{more}); "
            "add lines around it, or set expected_count"
        )
    if any(after - before < len(old) for before, after in pairwise(found)):
        raise AmbiguousMatch(f"occurrences of `old` in {file.shown} overlap; add lines around it")
    line_end = file.line_end
    pieces: list[str] = []
    done = 0
    for position in found:
        start, stop = normal.original(position), normal.original(position + len(old))
        pieces += [file.text[done:start], replacement(file.text, start, stop, new, line_end)]
        done = stop
    return "".join([*pieces, file.text[done:]]), lines


def _as_model_writes(text: str) -> str:
    return text.replace("\r\n", "\n")


def _occurrences(text: str, part: str) -> list[int]:
    """Positions of occurrences that don't overlap; overlapping ones make a match ambiguous too."""
    found: list[int] = []
    position = text.find(part)
    while position >= 0:
        found.append(position)
        position = text.find(part, position + 1)
    return found


def _near(text: str, old: str) -> str:
    """A hint for a text that differs only in blanks or letter case."""
    wanted = [" ".join(line.split()) for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    lines = text.split("\n")
    squeezed = [" ".join(line.split()) for line in lines]
    for at in range(len(squeezed) - len(wanted) + 1):
        if squeezed[at : at + len(wanted)] == wanted:
            return f"; lines {at + 1}-{at + len(wanted)} differ from it only in blanks"
    first = wanted[0]
    similar = [n for n, line in enumerate(squeezed, 1) if first and line == first]
    if similar and len(wanted) > 1:
        return f"; its first line is line {similar[0]}, but what follows differs"
    return "; read the file again"
