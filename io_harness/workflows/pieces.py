"""One piece of the harness alone, for a workflow of your own: a sandboxed command, a verification.

The worker needs `harness_activities` of `io_harness.plugin`, or the whole plugin, and a data converter
that carries pydantic models.
"""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from temporalio import workflow
from temporalio.common import RetryPolicy

from .calls import HEARTBEAT_SECONDS
from .contract import Command, DirectorySource, NonEmpty, SandboxSpec, Source, Verification
from .model import Strict
from .result import IsolationReport, VerificationReport

RUN_HELD = "run_held"
VERIFY_WORK = "verify_work"
_QUEUE_SECONDS = 3_600
"""How long a call may wait for a worker, all attempts together."""
_CHECKOUT_SECONDS = 1_800


class HeldCommand(Strict):
    """One command, and what it may touch."""

    run: Command
    directory: NonEmpty
    """Absolute path on the worker's host: where it runs, and all that it may change."""
    mode: Literal["read_only", "workspace_write"] = "workspace_write"
    hosts: tuple[NonEmpty, ...] = ()
    """Hosts it may reach, through the proxy, like `pypi.org` or `*.example.com:443`. None else."""
    sandbox: SandboxSpec = SandboxSpec()
    output_bytes: Annotated[int, Field(ge=1_000, le=256 * 1024)] = 32 * 1024
    """Kept of its output, which is in history: half at its head and half at its tail."""


class HeldResult(Strict):
    """How a held command ended."""

    cause: Literal["exited", "signalled", "wall", "cpu", "memory", "pids", "disk"]
    """By itself (exited, signalled), or at which limit."""
    exit_code: int | None
    """None unless it exited."""
    output: str
    """Of both streams, in order."""
    seconds: float
    isolation: IsolationReport
    """What held it, as the worker's probe found it."""

    @property
    def ok(self) -> bool:
        return self.cause == "exited" and self.exit_code == 0


class WorkToVerify(Strict):
    """A directory, and the criterion that it must meet in a fresh checkout."""

    work: DirectorySource
    verification: Verification
    base: Source | None = None
    """What the work began from: `protect`ed paths and ignored files are taken from here. None: from
    the work itself, so that `protect` protects nothing."""
    answer: JsonValue = None
    """For criteria about an answer."""
    sandbox: SandboxSpec = SandboxSpec()


async def run_held(command: HeldCommand, *, task_queue: str | None = None) -> HeldResult:
    """Run a command in the sandbox. A command that may change something runs once, whatever happens.

    Raises:
        temporalio.exceptions.ActivityError: the sandbox is weaker than `sandbox.require`, a host is no
            host, or the worker was lost.
    """
    changes = command.mode != "read_only" or command.hosts
    seconds = command.sandbox.limits.wall_seconds + 60
    result: HeldResult = await workflow.execute_activity(
        RUN_HELD,
        command,
        result_type=HeldResult,
        task_queue=task_queue,
        start_to_close_timeout=timedelta(seconds=seconds),
        schedule_to_close_timeout=timedelta(seconds=3 * seconds + _QUEUE_SECONDS),
        heartbeat_timeout=timedelta(seconds=HEARTBEAT_SECONDS),
        retry_policy=RetryPolicy(maximum_attempts=1 if changes else 3),
    )
    return result


async def verify_work(
    work: WorkToVerify, *, seconds: int, task_queue: str | None = None
) -> VerificationReport:
    """Judge a directory's files by a criterion. The directory itself is only read.

    Args:
        seconds: Set-up and criterion together, as the call's own time-out.

    Raises:
        temporalio.exceptions.ActivityError: the directory can't be read, or no checkout made of it.
    """
    attempt = seconds + _CHECKOUT_SECONDS
    report: VerificationReport = await workflow.execute_activity(
        VERIFY_WORK,
        work,
        result_type=VerificationReport,
        task_queue=task_queue,
        start_to_close_timeout=timedelta(seconds=attempt),
        schedule_to_close_timeout=timedelta(seconds=3 * attempt + _QUEUE_SECONDS),
        heartbeat_timeout=timedelta(seconds=HEARTBEAT_SECONDS),
        retry_policy=RetryPolicy(maximum_attempts=3),
    )
    return report
