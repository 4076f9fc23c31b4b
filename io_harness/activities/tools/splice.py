"""Replaces lines of a text so that lines that stay keep their bytes."""

from bisect import bisect_right
from difflib import SequenceMatcher

from .textfile import join_lines, split_lines

Line = tuple[str, str]
"""Content and line end."""


_MOST_PAIRS = 4_000_000
"""Above, comparing every old line with every new one could take minutes."""


def merge_lines(old: list[Line], new: list[Line], line_end: str) -> list[Line]:
    """`new` with the bytes of `old` wherever a line stays, and the line end of the line that it
    replaces where one is changed; any further line ends as `line_end` says.

    Whether a line of `new` has an end at all is as `new` says.
    """
    if all(end in (line_end, "") for _, end in old):
        return [(content, line_end if end else "") for content, end in new]
    before = 0
    while before < min(len(old), len(new)) and old[before][0] == new[before][0]:
        before += 1
    after = 0
    while after < min(len(old), len(new)) - before and old[-1 - after][0] == new[-1 - after][0]:
        after += 1
    merged: list[Line] = []
    for i, i_end, j, j_end in _changes(old, new, before, after):
        for offset, (content, end) in enumerate(new[j:j_end]):
            kept = old[i + offset][1] if i + offset < i_end else ""
            merged.append((content, (kept or line_end) if end else ""))
    return merged


def _changes(
    old: list[Line], new: list[Line], before: int, after: int
) -> list[tuple[int, int, int, int]]:
    """Ranges of `old` and the ranges of `new` that they become, equal ones included."""
    i_end, j_end = len(old) - after, len(new) - after
    ends = [(0, before, 0, before)], [(i_end, len(old), j_end, len(new))]
    if (i_end - before) * (j_end - before) > _MOST_PAIRS:
        middle = [(before, i_end, before, j_end)]
    else:
        contents = [c for c, _ in old[before:i_end]], [c for c, _ in new[before:j_end]]
        # Without autojunk=False, lines that are frequent in a long text count as noise.
        codes = SequenceMatcher(None, *contents, autojunk=False).get_opcodes()
        middle = [(before + i, before + k, before + j, before + m) for _, i, k, j, m in codes]
    return [*ends[0], *middle, *ends[1]]


def replacement(text: str, start: int, stop: int, new: str, line_end: str) -> str:
    """What to put for the region from `start` to `stop` of `text`, so that it reads as `new`, which
    has LF line ends."""
    old_lines = split_like(text, text[start:stop])
    return join_lines(merge_lines(old_lines, split_lines(new), line_end))


def split_like(whole: str, part: str) -> list[Line]:
    """Lines of a part of `whole`: a CR is a line's end in it only if it is one in the whole."""
    if "\n" in whole and "\n" not in part:
        return [(part, "")] if part else []
    return split_lines(part)


class Normal:
    """A text with LF line ends beside the original, and the way back for positions in it."""

    def __init__(self, text: str) -> None:
        self.lines = split_lines(text)
        self.text = "".join(content + ("\n" if end else "") for content, end in self.lines)
        self._starts: list[int] = []
        self._shifts: list[int] = []
        position = shift = 0
        for content, end in self.lines:
            position += len(content)
            if len(end) == 2:
                self._starts.append(position + 1)
                shift += 1
                self._shifts.append(shift)
            position += 1 if end else 0

    def original(self, position: int) -> int:
        """Position in the original of a position in `text`."""
        index = bisect_right(self._starts, position)
        return position + (self._shifts[index - 1] if index else 0)

    def line_number(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1
