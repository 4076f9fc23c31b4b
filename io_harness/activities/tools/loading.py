"""Loads a file to be edited, shows the change to the gate, and puts the new bytes in place."""

import hashlib
import os
from dataclasses import dataclass
from difflib import unified_diff

from .beneath import Place
from .context import ToolContext, Want
from .errors import BinaryFile, StaleFile, TooLarge, ToolError
from .textfile import TextFile, decode

EDIT_BYTES = 10 * 1024 * 1024
"""Larger files are not edited by tools."""
_PREVIEW_BYTES = 24 * 1024
_DIFF_LINES = 20_000


@dataclass(frozen=True)
class Loaded:
    """A file as it was when it was opened."""

    data: bytes
    status: os.stat_result

    @property
    def version(self) -> str:
        return version_of(self.data)


def version_of(data: bytes) -> str:
    """Names a file's content, for `if_version`."""
    return hashlib.sha256(data).hexdigest()[:10]


def load(place: Place, ctx: ToolContext, if_version: str | None = None) -> Loaded:
    """The file's bytes and status, from one open file.

    Raises:
        Refused, AsksNeeded: it may not be read; an edit's errors quote the file.
        ToolError: missing, not an ordinary file, above `EDIT_BYTES`, or another version.
    """
    descriptor = place.open_read()
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        ctx.check_read(place.path, status.st_nlink)
        if status.st_size > EDIT_BYTES:
            raise TooLarge(
                f"{place.shown} has {status.st_size:,} bytes; files above {EDIT_BYTES:,} are not "
                "edited by tools, use run_command"
            )
        data = file.read(EDIT_BYTES + 1)
    if len(data) > EDIT_BYTES:
        raise StaleFile(f"{place.shown} grew while it was read")
    loaded = Loaded(data, status)
    if if_version is not None and if_version != loaded.version:
        raise StaleFile(
            f"{place.shown} is version {loaded.version} now, not {if_version}; read it again"
        )
    return loaded


def write_wanted(path: str, before: bytes | None, after: bytes | None) -> Want:
    """The write as the gate is asked about it. None stands for a file that is not there."""
    return Want("write", path, preview(path, before, after), "diff")


def preview(path: str, before: bytes | None, after: bytes | None) -> str:
    """The change as a unified diff, cut at a size; sizes alone for what is no text."""
    old, new = _text(before, path), _text(after, path)
    if old is None or new is None:
        return f"binary {path}: {_size(before)} -> {_size(after)}"
    old_lines, new_lines = _lines(old), _lines(new)
    if len(old_lines) + len(new_lines) > _DIFF_LINES:
        return f"{path}: {_size(before)} -> {_size(after)}; too many lines for a diff"
    lines = unified_diff(
        old_lines,
        new_lines,
        f"a/{path}" if before is not None else "/dev/null",
        f"b/{path}" if after is not None else "/dev/null",
    )
    shown: list[str] = []
    room = _PREVIEW_BYTES
    for line in lines:
        text = _visible(line[: room + 1])
        room -= len(text.encode())
        if room < 0:
            digest = hashlib.sha256(after or b"").hexdigest()
            shown.append(f"[... the diff goes on; the new content has sha256 {digest} ...]\n")
            break
        shown.append(text)
    return "".join(shown) or f"{path}: {_size(before)} -> {_size(after)}\n"


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _visible(line: str) -> str:
    """A diff line in which line ends and control characters can be seen."""
    content = line.rstrip("\n")
    ended = content != line
    safe = "".join(
        c if c == "\t" or (c.isprintable() and not "\ud800" <= c <= "\udfff") else _escape(c)
        for c in content
    )
    return safe + ("\n" if ended else "\n\\ No newline at end of file\n")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _text(data: bytes | None, path: str) -> str | None:
    if data is None:
        return ""
    try:
        return decode(data, path).text
    except ToolError:
        return None


def _size(data: bytes | None) -> str:
    return "no file" if data is None else f"{len(data):,} bytes"


def encoded_new(file: TextFile, text: str) -> bytes:
    """The file's new bytes.

    Raises:
        NotEncodable: a character that the encoding lacks.
        BinaryFile: the new text would make a binary file of it.
    """
    data = file.to_bytes(text)
    if "\0" in text and "\0" not in file.text:
        raise BinaryFile(f"the new text of {file.shown} has a NUL character")
    return data
