"""A unified diff, read as what it says: its lines by kind, and its files with numbered lines.

How many lines a hunk has is counted, as its head says: a removed line `-- x` reads `--- x` in a diff,
and is no head of a file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GIT = "diff --git "
_HEADS = ("--- ", "+++ ", "index ")

Kind = Literal["file", "head", "hunk", "added", "removed", "same", "note"]
_SIGNS: dict[str, Kind] = {"+": "added", "-": "removed", " ": "same"}


@dataclass(frozen=True)
class Line:
    kind: Kind
    """file: git's head of a file. head: what else names a file before its hunks. note: the rest, like a
    rename, a change of mode, or what is no diff at all."""
    whole: str
    """As it stands in the diff."""
    old: int | None = None
    """Number in the file before."""
    new: int | None = None
    """Number in the file after."""

    @property
    def text(self) -> str:
        """Without the sign."""
        return self.whole[1:] if self.kind in ("added", "removed", "same") else self.whole


@dataclass
class FileDiff:
    name: str
    """Empty where the diff doesn't say."""
    lines: list[Line] = field(default_factory=list)
    """All but those that only name the file."""

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


def lines_of(diff: str) -> Iterator[Line]:
    """Every line. What is not understood is a note, never lost."""
    old = new = 0  # numbers of the next lines
    olds = news = 0  # lines that the hunk still has
    for text in diff.removesuffix("\n").split("\n") if diff else ():
        kind = _SIGNS.get(text[:1]) if olds or news else None
        if found := _HUNK.match(text):
            old, olds = int(found[1]), int(found[2] or 1)
            new, news = int(found[3]), int(found[4] or 1)
            yield Line("hunk", text)
        elif text.startswith(_GIT):
            olds = news = 0
            yield Line("file", text)
        elif (kind == "added" and news) or (kind == "removed" and olds) or (kind == "same"):
            before, after = kind != "added", kind != "removed"
            yield Line(kind, text, old if before else None, new if after else None)
            old, olds = old + before, max(olds - before, 0)
            new, news = new + after, max(news - after, 0)
        else:
            yield Line("head" if text.startswith(_HEADS) else "note", text)


def files_of(diff: str) -> list[FileDiff]:
    """The files of a diff, as git or `diff -u` writes it."""
    files: list[FileDiff] = []
    for line in lines_of(diff):
        if line.kind == "file":
            files.append(FileDiff(_name(line.whole)))
            continue
        begins = line.kind == "head" and line.whole.startswith("--- ")
        if not files or (begins and any(each.kind == "hunk" for each in files[-1].lines)):
            files.append(FileDiff(""))
        if line.kind != "head":
            files[-1].lines.append(line)
        elif not files[-1].name and line.whole != "--- /dev/null":
            files[-1].name = _plain_name(line.whole)
    return files


def _plain_name(head: str) -> str:
    """The path of `--- a/<path>` or `+++ b/<path>`."""
    if head.startswith("index "):
        return ""
    path = head[4:].partition("\t")[0]
    return path[2:] if path.startswith(("a/", "b/")) else path


def _name(head: str) -> str:
    """The path after the change, from `diff --git a/<path> b/<path>`."""
    paths = head.removeprefix(_GIT)
    middle = len(paths) // 2
    before, after = paths[:middle], paths[middle + 1 :]
    same = before.lstrip('"').removeprefix("a/") == after.lstrip('"').removeprefix("b/")
    return (after if same else paths.rpartition(" b/")[2] or paths).strip('"').removeprefix("b/")
