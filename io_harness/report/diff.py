"""A unified diff, taken apart into files and numbered lines."""

import re
from dataclasses import dataclass, field
from typing import Literal

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

Kind = Literal["added", "removed", "same", "hunk", "note"]


@dataclass(frozen=True)
class Line:
    kind: Kind
    text: str
    """Without the sign."""
    old: int | None = None
    """Number in the file before."""
    new: int | None = None
    """Number in the file after."""


@dataclass
class FileDiff:
    name: str
    lines: list[Line] = field(default_factory=list)

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for line in self.lines)


def files_of(diff: str) -> list[FileDiff]:
    """The files of a diff as git writes it. What is not understood is kept as a note, never lost."""
    files: list[FileDiff] = []
    old = new = 0
    in_hunk = False
    for text in diff.split("\n")[: -1 if diff.endswith("\n") else None]:
        if text.startswith("diff --git "):
            files.append(FileDiff(_name(text)))
            in_hunk = False
            continue
        if not files:
            files.append(FileDiff(""))
        lines = files[-1].lines
        if found := _HUNK.match(text):
            old, new = int(found[1]), int(found[2])
            in_hunk = True
            lines.append(Line("hunk", text))
        elif not in_hunk:
            if not text.startswith(("index ", "--- ", "+++ ")):
                lines.append(Line("note", text))
        elif text.startswith("+"):
            lines.append(Line("added", text[1:], new=new))
            new += 1
        elif text.startswith("-"):
            lines.append(Line("removed", text[1:], old=old))
            old += 1
        elif text.startswith(" "):
            lines.append(Line("same", text[1:], old=old, new=new))
            old, new = old + 1, new + 1
        else:
            lines.append(Line("note", text))
    return files


def _name(head: str) -> str:
    """The path after the change, from `diff --git a/<path> b/<path>`."""
    paths = head.removeprefix("diff --git ")
    middle = len(paths) // 2
    before, after = paths[:middle], paths[middle + 1 :]
    same = before.lstrip('"').removeprefix("a/") == after.lstrip('"').removeprefix("b/")
    return (after if same else paths.rpartition(" b/")[2] or paths).strip('"').removeprefix("b/")
