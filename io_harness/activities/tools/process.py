"""A command of the agent's: its plan for the sandbox, and what the model sees of it."""

import asyncio
import stat
import sys
from collections.abc import Coroutine
from pathlib import Path

from io_harness import sandbox
from io_harness.activities.gate import CommandLine
from io_harness.activities.network import REFUSALS_BYTES, CommandNetwork
from io_harness.activities.shell import shell
from io_harness.activities.telemetry.spans import sandboxed
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES, Effect
from io_harness.workflows.policy import may_reach_network, policy_of

from .blocking import in_thread
from .context import AsksNeeded, ToolContext, Want
from .errors import CommandNotStarted
from .terminal import Terminal

_MIB = 1024 * 1024
_HEADER_BYTES = 512
_NO_NETWORK = sandbox.NetNone()
QUIET = {
    "CI": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "COLUMNS": "120",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}
"""So that nothing waits for a person: no pager, no editor, no prompt, no colours."""


async def command_plan(
    ctx: ToolContext,
    command: str,
    timeout_seconds: float | None = None,
    net: sandbox.Net = _NO_NETWORK,
) -> sandbox.Plan:
    """The plan of a shell command line in the working copy. What the policy withholds from file tools
    is hidden from it too, where the sandbox can.

    Args:
        timeout_seconds: wall time instead of the contract's; CPU time grows with it.
        net: what it may reach.
    """
    limits = _limits(ctx.contract, timeout_seconds)
    hidden, protected = await in_thread(lambda: _closed(ctx))
    return sandbox.Plan(
        argv=(shell(), "-c", command),
        cwd=ctx.root,
        workspace=ctx.root,
        mode="workspace_write",
        read_only_roots=interpreter_roots(),
        hidden=hidden,
        protected=protected,
        env=command_env(ctx.contract),
        limits=limits,
        net=net,
        require=frozenset(ctx.contract.sandbox.require),
    )


def _closed(ctx: ToolContext) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """What is hidden from commands, and what is visible but stays as it is. What is hidden can't be
    written either. An empty protected file may be the cover of another command's sandbox, which goes
    at any moment; it holds nothing to hide."""
    protected = sandbox.protected_in(ctx.root)
    hidden = tuple(
        path
        for path in ctx.gate.withheld(ctx.root)
        if path not in protected or not _is_empty_file(path)
    )
    return hidden, tuple(path for path in protected if path not in hidden)


def _is_empty_file(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def exec_wanted(command: str, plan: sandbox.Plan) -> Want:
    """The command as the gate is asked about it."""
    line = CommandLine(command, plan.workspace, home=plan.env.get("HOME", "/"))
    return Want("exec", line, command, "command")


def command_effect(contract: TaskContract) -> Effect:
    """The working copy can be put back; what a command did to other hosts can not."""
    return "unrepeatable" if may_reach_network(policy_of(contract.policy)) else "write"


def interpreter_roots() -> tuple[Path, ...]:
    """Where the worker's own Python and its packages are, so that commands can use them."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix))))


def command_env(contract: TaskContract) -> dict[str, str]:
    """The whole environment of an agent's command."""
    env = sandbox.base_env(contract.sandbox.env) | QUIET
    own = str(Path(sys.executable).parent)
    env["PATH"] = f"{own}:{env['PATH']}" if env.get("PATH") else own
    return env


def _limits(contract: TaskContract, timeout_seconds: float | None) -> sandbox.Limits:
    given = contract.sandbox.limits
    wall = timeout_seconds or given.wall_seconds
    return sandbox.Limits(
        wall_seconds=wall,
        # A command that may take longer may use as much more of the processor.
        cpu_seconds=max(given.cpu_seconds, int(given.cpu_seconds * wall / given.wall_seconds)),
        memory_bytes=given.memory_mb * _MIB,
        processes=given.processes,
        open_files=given.open_files,
        file_bytes=given.file_mb * _MIB,
        tmp_bytes=given.tmp_mb * _MIB,
        output_bytes=_HEADER_BYTES,  # kept by the recorder instead
    )


async def execute(plan: sandbox.Plan, ctx: ToolContext, network: CommandNetwork) -> Observation:
    """Run it and show what a terminal would, capped, and which hosts it was refused.

    Raises:
        CommandNotStarted: the sandbox failed, not the command.
        AsksNeeded: it wants a host about which a human must be asked; it was ended there.
    """
    terminal = Terminal()
    inline = INLINE_OUTPUT_BYTES - _HEADER_BYTES - REFUSALS_BYTES
    with ctx.outputs.recorder(inline_bytes=inline) as recorder:
        try:
            completed = await _unless_it_asks(
                sandboxed(
                    sandbox.run(plan, on_output=lambda data: recorder.write(terminal.feed(data)))
                ),
                network,
            )
        except sandbox.SandboxError as error:
            raise CommandNotStarted(f"the sandbox could not run the command: {error}") from error
        recorder.write(terminal.finish())
    header = f"[{ending(completed, plan.limits)}]\n{network.refusals()}"
    return recorder.observation(prefix=header, is_error=completed.cause != "exited")


async def _unless_it_asks(
    command: Coroutine[None, None, sandbox.Completed], network: CommandNetwork
) -> sandbox.Completed:
    """The end of the command.

    Raises:
        AsksNeeded: a human is to be asked first. The command was ended.
    """
    running, asked = asyncio.ensure_future(command), asyncio.ensure_future(network.asked())
    try:
        await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
        if network.questions:
            raise AsksNeeded(network.questions)
        return await running
    finally:
        running.cancel()
        asked.cancel()
        await asyncio.wait({running, asked})


def ending(completed: sandbox.Completed, limits: sandbox.Limits) -> str:
    """How a command ended, for the model."""
    after = f"after {completed.seconds:.1f} s"
    match completed.cause:
        case "exited":
            return f"exit {completed.exit_code} {after}"
        case "signalled":
            return f"ended by signal {completed.signal} {after}"
        case "wall":
            return (
                f"stopped {after}: over the limit of {limits.wall_seconds:g} s; whatever must run "
                "longer goes into a job"
            )
        case "cpu":
            return f"stopped {after}: over {limits.cpu_seconds} s of CPU time"
        case "memory":
            return f"stopped {after}: over {limits.memory_bytes // _MIB} MiB of memory"
        case "pids":
            return f"stopped {after}: over {limits.processes} processes"
        case "disk":
            return f"stopped {after}: over the limits of disk space"
