"""Writes a whole file."""

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .blocking import in_thread
from .context import ToolContext
from .errors import IdenticalText, NotFound, TooLarge
from .loading import EDIT_BYTES, encoded_new, load, version_of, write_wanted
from .splice import merge_lines
from .textfile import TextFile, decode, join_lines, split_lines


class WriteFileArgs(Args):
    path: str
    content: str
    if_version: str | None = None


class WriteFile(Tool[WriteFileArgs]):
    name = "write_file"
    description = "Create a file, or replace all of it. Folders are made."
    Args = WriteFileArgs
    effect = "write"

    async def run(self, args: WriteFileArgs, ctx: ToolContext) -> Observation:
        return await in_thread(lambda: self._write(args, ctx))

    def _write(self, args: WriteFileArgs, ctx: ToolContext) -> Observation:
        with ctx.files.place(args.path) as place:
            if place.stat() is None:
                if args.if_version is not None:
                    raise NotFound(f"{args.path} does not exist, so it has no version")
                data = args.content.encode("utf-8", "strict")
                before = status = None
            else:
                loaded = load(place, ctx, args.if_version)
                before, status = loaded.data, loaded.status
                data = (
                    rewritten(decode(before, args.path), args.content)
                    if before
                    else (args.content.encode("utf-8", "strict"))
                )
                if data == before:
                    raise IdenticalText(f"{args.path} has exactly this content already")
            if len(data) > EDIT_BYTES:
                raise TooLarge(f"{len(data):,} bytes; write_file takes up to {EDIT_BYTES:,}")
            ctx.require(write_wanted(place.path, before, data))
            place.replace(data, status)
        verb = "created" if status is None else "wrote"
        return Observation(
            text=f"{verb} {args.path} ({len(data):,} bytes); version {version_of(data)}"
        )


def rewritten(file: TextFile, content: str) -> bytes:
    """The new bytes of an existing text file: encoding and mark stay, lines that stay keep their
    ends, others get the file's own, unless `content` itself says CRLF."""
    content = content.removeprefix("\ufeff")
    if "\r" in content:
        return encoded_new(file, content)
    lines = merge_lines(split_lines(file.text), split_lines(content), file.line_end)
    return encoded_new(file, join_lines(lines))
