"""Reads a text file, whole or by lines, or an image."""

import functools
import re

from pydantic import Field

from io_harness.workflows.messages import Image, Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES

from .base import Args, Tool
from .blocking import in_thread
from .context import ToolContext
from .errors import BinaryFile, NoMatch, TooLarge
from .loading import EDIT_BYTES, Loaded, load, version_of
from .textfile import TextFile, decode, split_lines

_IMAGE_BYTES = 3_750_000  # 5 MB in base64, which is where providers stop
_SHOWN_BYTES = INLINE_OUTPUT_BYTES - 1024
_STRAY = re.compile("[\udc80-\udcff]")
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ReadFileArgs(Args):
    path: str
    start_line: int = Field(1, ge=1)
    end_line: int | None = Field(None, ge=1)


class ReadFile(Tool[ReadFileArgs]):
    name = "read_file"
    description = "Read a text file or an image. Lines are shown as number, tab, text."
    Args = ReadFileArgs
    effect = "read"

    async def run(self, args: ReadFileArgs, ctx: ToolContext) -> Observation:
        loaded = await in_thread(functools.partial(_load, args.path, ctx))
        media_type = image_type(loaded.data)
        if media_type is not None:
            return await _image(args.path, loaded.data, media_type, ctx)
        return Observation(text=await in_thread(functools.partial(shown, args, loaded)))


def _load(path: str, ctx: ToolContext) -> Loaded:
    with ctx.files.place(path) as place:
        status = place.regular()
        if status.st_size > EDIT_BYTES:
            raise TooLarge(
                f"{path} has {status.st_size:,} bytes, and read_file takes files up to "
                f"{EDIT_BYTES:,}; use grep, or run_command with sed -n '1,200p' or head -c"
            )
        return load(place, ctx)


def image_type(data: bytes) -> str | None:
    """Media type of an image that models take, by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


async def _image(path: str, data: bytes, media_type: str, ctx: ToolContext) -> Observation:
    if len(data) > _IMAGE_BYTES:
        raise TooLarge(
            f"{path} is an image of {len(data):,} bytes, and models take up to {_IMAGE_BYTES:,}; "
            "make a smaller copy with run_command"
        )
    image = Image.model_validate(
        {"media_type": media_type, "blob": await ctx.blobs.put_blob(data), "bytes": len(data)}
    )
    return Observation(text=f"[{path}: {media_type}, {len(data):,} bytes]", images=(image,))


def shown(args: ReadFileArgs, loaded: Loaded) -> str:
    """The lines asked for, under a header.

    Raises:
        BinaryFile, UnsupportedEncoding: no text.
        TooLarge: more than one observation holds.
        NoMatch: there are no such lines.
    """
    try:
        file = decode(loaded.data, args.path)
    except BinaryFile:
        raise BinaryFile(
            f"{args.path} is a binary file ({len(loaded.data):,} bytes, begins with "
            f"{loaded.data[:16].hex(' ')}); use run_command to look into it"
        ) from None
    lines = split_lines(file.text)
    last = min(args.end_line or len(lines), len(lines))
    if last < args.start_line and (lines or args.start_line > 1 or args.end_line is not None):
        raise NoMatch(
            f"{args.path} has {len(lines)} lines, so there is no range "
            f"{args.start_line}-{args.end_line or 'end'}"
        )
    numbered = [
        f"{number}\t{visible(content)}"
        for number, (content, _) in enumerate(lines[args.start_line - 1 : last], args.start_line)
    ]
    body = "\n".join(numbered)
    size = len(body.encode())
    if size > _SHOWN_BYTES:
        raise TooLarge(_too_large(args, numbered, size, len(lines)))
    some = "" if last - args.start_line + 1 >= len(lines) else f" {args.start_line}-{last} of"
    about = ", ".join([f"{some} {len(lines)} lines".strip(), *_traits(file, loaded.data)])
    return f"[{args.path}: {about}]\n{body}"


def visible(content: str) -> str:
    """Bytes that are no UTF-8 in a mostly-UTF-8 file, as escapes."""
    return _STRAY.sub(lambda stray: f"\\x{ord(stray[0]) - 0xDC00:02x}", content)


def _too_large(args: ReadFileArgs, numbered: list[str], size: int, total: int) -> str:
    longest = max(numbered, key=len)
    if len(longest.encode()) > _SHOWN_BYTES // 2:
        number = longest.split("\t", 1)[0]
        hint = f"line {number} alone has {len(longest):,} characters: use grep or cut -c"
    else:
        room = fitting(numbered)
        first = args.start_line
        hint = f"read a part, such as start_line={first}, end_line={first + room - 1}, or use grep"
    return (
        f"lines {args.start_line}-{args.start_line + len(numbered) - 1} of {total} in {args.path} are "
        f"{size:,} bytes, and {_SHOWN_BYTES:,} fit; {hint}"
    )


def fitting(lines: list[str]) -> int:
    """How many of the first lines fit; one at least."""
    room = _SHOWN_BYTES
    for count, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            return max(count, 1)
    return len(lines)


def _traits(file: TextFile, data: bytes) -> list[str]:
    """What is out of the ordinary, and the version."""
    ends = {end for _, end in split_lines(file.text) if end}
    traits: list[str] = []
    if not file.is_plain:
        marked = " with byte order mark" if file.encoding.mark else ""
        stray = " with stray bytes" if file.encoding.errors == "surrogateescape" else ""
        traits.append(f"{file.encoding.name}{marked}{stray}")
    if len(ends) > 1:
        traits.append("mixed line ends")
    elif ends == {"\r\n"}:
        traits.append("CRLF")
    elif ends == {"\r"}:
        traits.append("CR")
    if file.text and not file.text.endswith(("\n", "\r")):
        traits.append("no final newline")
    return [*traits, f"version {version_of(data)}"]
