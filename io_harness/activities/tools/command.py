"""Runs a command in the sandbox."""

from pydantic import Field

from io_harness.activities.gate import CommandLine
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
        plan = command_plan(ctx, args.command, args.timeout_seconds)
        line = CommandLine(args.command, root=ctx.root, home=plan.env.get("HOME", "/"))
        ctx.require(Want("exec", line, args.command, "command"))
        return await execute(plan, ctx)
