"""Finds files by name and lines by pattern, with ripgrep."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .context import ToolContext
from .errors import InvalidPattern

_RG = (
    "--no-config",
    "--hidden",
    "--no-require-git",
    "--no-ignore-global",
    "--sort",
    "path",
    "-g",
    "!.git",
)


def ripgrep() -> str | None:
    """The rg binary: the one that came with the package, else the system's."""
    own = Path(sys.executable).with_name("rg")
    return str(own) if own.exists() else shutil.which("rg")


class FindArgs(Args):
    pattern: str
    """Glob, such as *.py or src/**/*.ts."""
    path: str = "."
    limit: int = Field(200, ge=1, le=2000)


class Find(Tool[FindArgs]):
    name = "find"
    description = "Find files by glob. Hidden files are searched, ignored ones not."
    Args = FindArgs
    effect = "read"

    async def run(self, args: FindArgs, ctx: ToolContext) -> Observation:
        with ctx.files.directory(args.path) as (_, path):
            out = await _rg(ctx, "--files", "-g", args.pattern, "--", path)
        names = [n.removeprefix("./") for n in out.splitlines()]
        shown = [n for n in names if ctx.gate.readable(n)]
        text = "\n".join(shown[: args.limit])
        return ctx.outputs.observe(
            f"{text}\n[{len(shown)} files; {len(names) - len(shown)} withheld]"
        )


class GrepArgs(Args):
    pattern: str
    path: str = "."
    limit: int = Field(100, ge=1, le=1000)


class Grep(Tool[GrepArgs]):
    name = "grep"
    description = "Search file contents by regular expression."
    Args = GrepArgs
    effect = "read"

    async def run(self, args: GrepArgs, ctx: ToolContext) -> Observation:
        with ctx.files.place(args.path) as place:
            place.existing()
            out = await _rg(ctx, "--json", "-e", args.pattern, "--", place.path)
        hits = []
        for line in out.splitlines():
            event = json.loads(line)
            if event["type"] == "match" and "text" in event["data"]["path"]:
                data = event["data"]
                name = data["path"]["text"].removeprefix("./")
                if ctx.gate.readable(name):
                    hits.append(
                        f"{name}:{data['line_number']}: {data['lines'].get('text', '').rstrip()}"
                    )
        return ctx.outputs.observe(
            "\n".join(hits[: args.limit]) + f"\n[{len(hits)} matching lines]"
        )


async def _rg(ctx: ToolContext, *argv: str) -> str:
    program = ripgrep()
    if program is None:
        raise InvalidPattern("ripgrep is not installed")
    process = await asyncio.create_subprocess_exec(
        program, *_RG, *argv, cwd=ctx.root, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    if process.returncode == 2:
        raise InvalidPattern(err.decode(errors="replace").strip())
    return out.decode(errors="replace")
