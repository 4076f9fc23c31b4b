"""Lists a directory."""

import os

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .context import ToolContext

_SHOWN = 500


class ListFilesArgs(Args):
    path: str = "."
    depth: int = Field(1, ge=1, le=5)


class ListFiles(Tool[ListFilesArgs]):
    name = "list_files"
    description = "List a directory, hidden and ignored entries included."
    Args = ListFilesArgs
    effect = "read"

    async def run(self, args: ListFilesArgs, ctx: ToolContext) -> Observation:
        with ctx.files.directory(args.path) as (descriptor, path):
            names = sorted(os.listdir(descriptor))
        prefix = "" if path == "." else f"{path}/"
        shown = [n for n in names if ctx.gate.readable(prefix + n)]
        text = "\n".join(shown[:_SHOWN])
        if len(shown) < len(names):
            text += f"\n[{len(names) - len(shown)} withheld by the policy]"
        return ctx.outputs.observe(text or "[empty]")
