"""Runs a command in the sandbox."""

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .context import ToolContext, Want
from .process import command_plan, execute


class RunCommandArgs(Args):
    command: str
    """A shell command line; it starts in the workspace."""
    timeout_seconds: int | None = Field(None, ge=1)


class RunCommand(Tool[RunCommandArgs]):
    name = "run_command"
    description = "Run a shell command in the workspace. No terminal, no input."
    Args = RunCommandArgs
    effect = "write"

    async def run(self, args: RunCommandArgs, ctx: ToolContext) -> Observation:
        ctx.require(Want("exec", args.command, args.command, "command"))
        return await execute(command_plan(ctx, args.command, args.timeout_seconds), ctx)
