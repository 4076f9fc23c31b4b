"""Runs the contract's own commands (set-up, verification) in the sandbox."""

from dataclasses import replace
from pathlib import Path

from io_harness import sandbox
from io_harness.workflows.contract import Command, TaskContract

from .network import CommandNetwork
from .shell import shell
from .telemetry.spans import sandboxed
from .tools.process import command_env, interpreter_roots

_MIB = 1024 * 1024
_KEPT = 256 * 1024


async def run_command(
    command: Command,
    root: Path,
    contract: TaskContract,
    seconds: int,
    network: CommandNetwork | None = None,
) -> sandbox.Completed:
    """Run a command at `root`, which it may write to.

    Args:
        seconds: Wall time; it is also the ceiling of CPU time.
        network: What it may reach; None is nothing.

    Raises:
        SandboxError: the sandbox failed, not the command.
    """
    plan = contract_plan(command, root, contract, seconds)
    return await sandboxed(
        sandbox.run(replace(plan, net=network.net) if network is not None else plan)
    )


def contract_plan(
    command: Command, root: Path, contract: TaskContract, seconds: int
) -> sandbox.Plan:
    """The plan of a command at `root`, which it may write to. It reaches nothing."""
    limits = contract.sandbox.limits
    return sandbox.Plan(
        argv=(shell(), "-c", command) if isinstance(command, str) else command,
        cwd=root,
        workspace=root,
        mode="workspace_write",
        read_only_roots=interpreter_roots(),
        env=command_env(contract),
        require=frozenset(contract.sandbox.require),
        limits=sandbox.Limits(
            wall_seconds=seconds,
            cpu_seconds=max(limits.cpu_seconds, seconds),
            memory_bytes=limits.memory_mb * _MIB,
            processes=limits.processes,
            open_files=limits.open_files,
            file_bytes=limits.file_mb * _MIB,
            tmp_bytes=limits.tmp_mb * _MIB,
            output_bytes=_KEPT,
        ),
    )


def describe_end(completed: sandbox.Completed) -> str:
    """How a command ended, as the rest of a sentence about it."""
    match completed.cause:
        case "exited":
            return f"exited with {completed.exit_code}"
        case "signalled":
            return f"was ended by signal {completed.signal}"
        case "wall" | "cpu":
            return f"was stopped after {completed.seconds:.0f} s at its limit of {completed.cause} time"
        case "memory" | "pids" | "disk":
            return f"was stopped at its limit of {completed.cause}"
