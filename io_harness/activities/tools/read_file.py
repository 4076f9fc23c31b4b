"""Reads a text file, whole or by lines."""

import os

from pydantic import Field

from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES

from .base import Args, Tool
from .context import ToolContext
from .errors import TooLarge
from .loading import version_of
from .textfile import decode, split_lines

_READ_BYTES = 64 * 1024 * 1024


class ReadFileArgs(Args):
    path: str
    start_line: int = Field(1, ge=1)
    end_line: int | None = Field(None, ge=1)


class ReadFile(Tool[ReadFileArgs]):
    name = "read_file"
    description = "Read a text file or image. Each line is shown as number, tab, text."
    Args = ReadFileArgs
    effect = "read"

    async def run(self, args: ReadFileArgs, ctx: ToolContext) -> Observation:
        with ctx.files.place(args.path) as place:
            descriptor = place.open_read()
            with os.fdopen(descriptor, "rb") as opened:
                ctx.check_read(place.path)
                data = opened.read(_READ_BYTES + 1)
        if len(data) > _READ_BYTES:
            raise TooLarge(f"{args.path} has more than {_READ_BYTES:,} bytes; use run_command")
        file = decode(data, args.path)
        lines = split_lines(file.text)
        last = len(lines) if args.end_line is None else min(args.end_line, len(lines))
        body = "\n".join(
            f"{number}\t{content}"
            for number, (content, _) in enumerate(
                lines[args.start_line - 1 : last], args.start_line
            )
        )
        header = f"[{args.path}: {len(lines)} lines, version {version_of(data)}]\n"
        if len(body.encode("utf-8", "backslashreplace")) > INLINE_OUTPUT_BYTES - 1024:
            raise TooLarge(
                f"{args.path} has {len(data):,} bytes in {len(lines)} lines; read a range"
            )
        return ctx.outputs.observe(header + body)
