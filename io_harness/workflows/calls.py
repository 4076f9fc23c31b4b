"""Typed stubs of the activities: the only way in which the workflow calls them.

Nothing is unbounded: each has `schedule_to_close`, a maximum of attempts and a heartbeat time-out.
"""

from datetime import timedelta
from typing import Any, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from .ended import RunEnded, stop_if_cancelled
from .mcp import ListMcpToolsInput, McpListing
from .model import Record
from .payloads import (
    AdmitInput,
    Admitted,
    CompleteInput,
    Completion,
    Effect,
    LandInput,
    LandOutcome,
    MergeInput,
    MergeOutcome,
    Prepared,
    PrepareInput,
    Released,
    ReleaseInput,
    ToolOutcome,
    UseToolInput,
    VerifyInput,
)
from .result import Outcome, VerificationReport

HEARTBEAT_SECONDS = 10
"""A worker that is silent for longer is taken for dead, and its call runs elsewhere."""
PAYLOAD_BYTES = 256 * 1024
"""Ceiling of one activity's input."""
SIDE_BY_SIDE = 8
"""Calls that may be scheduled in one workflow task."""
LAND_SECONDS = 600
MERGE_SECONDS = 120
RELEASE_SECONDS = 120
ADMIT_SECONDS = 60
QUEUE_SECONDS = 1_800
"""How long a call of the run's own may wait, all attempts together, for a worker that is busy with
other runs. The time of an attempt begins when a worker takes it."""


class Options(Record):
    """How long one call may take, and where it runs."""

    attempt_seconds: float
    total_seconds: float
    """All attempts and the waits between them."""
    task_queue: str | None = None
    """None: the workflow's own."""


async def admit(arg: AdmitInput, summary: str) -> Admitted:
    options = _queued(ADMIT_SECONDS)
    return cast(Admitted, await _call("admit", arg, Admitted, options, summary, attempts=4))


async def prepare(arg: PrepareInput, options: Options, summary: str) -> Prepared:
    return cast(Prepared, await _call("prepare", arg, Prepared, options, summary, attempts=4))


async def complete(arg: CompleteInput, options: Options, summary: str) -> Completion:
    return cast(Completion, await _call("complete", arg, Completion, options, summary, attempts=6))


async def use_tool(
    arg: UseToolInput, options: Options, summary: str, *, effect: Effect
) -> ToolOutcome:
    attempts = 1 if effect == "unrepeatable" else 5
    outcome = await _call("use_tool", arg, ToolOutcome, options, summary, attempts=attempts)
    return cast(ToolOutcome, outcome)


async def list_mcp_tools(arg: ListMcpToolsInput, options: Options, summary: str) -> McpListing:
    listing = await _call("list_mcp_tools", arg, McpListing, options, summary, attempts=3)
    return cast(McpListing, listing)


async def verify(arg: VerifyInput, options: Options, summary: str) -> VerificationReport:
    report = await _call("verify", arg, VerificationReport, options, summary, attempts=4)
    return cast(VerificationReport, report)


async def land(arg: LandInput, task_queue: str | None, summary: str) -> LandOutcome:
    options = _queued(LAND_SECONDS, task_queue)
    return cast(LandOutcome, await _call("land", arg, LandOutcome, options, summary, attempts=5))


async def merge(arg: MergeInput, task_queue: str | None, summary: str) -> MergeOutcome:
    options = _queued(MERGE_SECONDS, task_queue)
    return cast(MergeOutcome, await _call("merge", arg, MergeOutcome, options, summary, attempts=5))


async def release(arg: ReleaseInput, task_queue: str | None, summary: str) -> Released:
    options = _queued(RELEASE_SECONDS, task_queue)
    released = await _call(
        "release", arg, Released, options, summary, attempts=5, when_cancelled=True
    )
    return cast(Released, released)


def _queued(attempt_seconds: float, task_queue: str | None = None) -> Options:
    """Of a call that no budget bounds."""
    total = attempt_seconds * 4 + QUEUE_SECONDS
    return Options(attempt_seconds=attempt_seconds, total_seconds=total, task_queue=task_queue)


def check_size(name: str, arg: Record) -> None:
    """Size a payload before it is scheduled. The server has limits that a run can't recover from: a
    payload over 2 MB fails its workflow task again and again, and a task whose payloads pass 4 MB
    together gets the workflow terminated. As at most `SIDE_BY_SIDE` calls are scheduled in one task,
    each far smaller than this ceiling, a task stays under 1 MB.

    Raises:
        RunEnded: it is too large. It was not scheduled.
    """
    size = len(arg.model_dump_json().encode())
    if size > PAYLOAD_BYTES:
        raise RunEnded(
            Outcome.ESCALATED,
            f"the input of {name} has {size:,} bytes, over the {PAYLOAD_BYTES:,} that one payload "
            "may have",
            code="PayloadTooLarge",
        )


async def _call(
    name: str,
    arg: Record,
    result: object,
    options: Options,
    summary: str,
    *,
    attempts: int,
    when_cancelled: bool = False,
) -> object:
    """`when_cancelled`: whether a run that was asked to end still makes the call."""
    if not when_cancelled:
        stop_if_cancelled()
    check_size(name, arg)
    return await workflow.execute_activity(
        name,
        arg,
        task_queue=options.task_queue,
        # A union is as good a hint to the pydantic converter as a class; the SDK's signature says type.
        result_type=cast("type[Any]", result),
        start_to_close_timeout=timedelta(
            seconds=min(options.attempt_seconds, options.total_seconds)
        ),
        schedule_to_close_timeout=timedelta(seconds=options.total_seconds),
        heartbeat_timeout=timedelta(seconds=HEARTBEAT_SECONDS),
        # The ceiling of the interval is none on waiting: a provider's Retry-After overrides it.
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=1),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=60),
            maximum_attempts=attempts,
        ),
        # A cancelled run waits until the process tree of its call is dead.
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=_short(summary),
    )


def _short(text: str) -> str:
    """The UI shows one line; the server takes 400 bytes of summary at most."""
    line = " ".join(text.split())
    encoded = line.encode()
    return line if len(encoded) <= 200 else encoded[:197].decode(errors="ignore") + "…"
