"""Runs a command in the sandbox."""

from pydantic import Field

from io_harness.activities.network import Asks
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import Effect

from .base import Args, Tool, Word
from .context import ToolContext
from .process import command_effect, command_plan, exec_wanted, execute


class RunCommandArgs(Args):
    command: Word
    """A shell command line; it starts in the workspace."""
    timeout_seconds: int | None = Field(None, ge=1)


class RunCommand(Tool[RunCommandArgs]):
    name = "run_command"
    description = "Run a shell command in the workspace. No terminal, no input."
    Args = RunCommandArgs
    effect = "write"

    async def run(self, args: RunCommandArgs, ctx: ToolContext) -> Observation:
        longest = ctx.contract.sandbox.limits.wall_seconds
        seconds = min(args.timeout_seconds or longest, longest)
        network = ctx.network.command(
            ctx.run_key,
            ctx.gate,
            Asks(
                ctx.call, args.command, "It was ended there. If approved, it runs from its start."
            ),
        )
        plan = await command_plan(ctx, args.command, seconds, network.net)
        ctx.require(exec_wanted(args.command, plan))
        return await execute(plan, ctx, network)

    def effect_under(self, contract: TaskContract) -> Effect:
        return command_effect(contract)
