"""Starts and inspects runs, from any client of the namespace."""

import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, ListWorkersRequest
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode

from io_harness import TASK_QUEUE
from io_harness.workflows import attributes
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import AssistantMessage, Message, ToolCall
from io_harness.workflows.model import Record
from io_harness.workflows.result import RunResult
from io_harness.workflows.status import RunStatus
from io_harness.workflows.transcript import TranscriptPage

WORKFLOW = "AgentRun"
_WITHOUT_RESULT = {"failed": "Failed", "terminated": "Terminated", "timed_out": "TimedOut"}
"""Ends of which the search attribute, written by the run itself, knows nothing."""
_SUMMARY_BYTES = 200
_WORKER_SILENT_SECONDS = 120  # two heartbeats of the SDK's default


class NoSuchRun(Exception):
    """The namespace has no run of that id."""


class HasEnded(NoSuchRun):
    """The run was there, and can't be told anything any more."""


class DecisionRejected(Exception):
    """The run did not take the decision; the message says why."""


class ListedRun(Record):
    """A run as the list shows it: from search attributes, without asking the run."""

    id: str
    run_id: str
    status: str
    """Temporal's: running, completed, failed, ..."""
    state: str | None
    """The harness's: working, waiting, or the outcome; None where the attribute isn't registered."""
    repo: str | None
    model: str | None
    error: str | None = None
    """Error code of a run that failed without a result."""
    step: int | None
    spend_usd: float | None
    started: datetime
    ended: datetime | None


def new_id(goal: str) -> str:
    """An id that people can tell apart: the goal's first words, and four random letters."""
    words = re.findall(r"[a-z0-9]+", goal.lower())
    return "-".join([*words[:5], secrets.token_hex(3)])[:80]


async def start(
    client: Client, contract: TaskContract, *, id: str | None = None, task_queue: str = TASK_QUEUE
) -> WorkflowHandle[object, RunResult]:
    """Start a run.

    Raises:
        temporalio.exceptions.WorkflowAlreadyStartedError: a run of that id is running.
    """
    return await client.start_workflow(
        WORKFLOW,
        contract,
        id=id or new_id(contract.goal),
        task_queue=task_queue,
        result_type=RunResult,
        static_summary=one_line(contract.goal),
    )


def handle(client: Client, run: str) -> WorkflowHandle[object, RunResult]:
    return client.get_workflow_handle(run, result_type=RunResult)


async def list_runs(
    client: Client, *, state: str | None = None, limit: int = 20
) -> AsyncIterator[ListedRun]:
    """The newest runs first.

    Args:
        state: Only runs in this state (`waiting`, `working`, `success`, ...), or that Temporal calls
            `failed`, `terminated` or `timed_out`.
    """
    query = f"WorkflowType = '{WORKFLOW}'"
    if state in _WITHOUT_RESULT:
        query += f" AND ExecutionStatus = '{_WITHOUT_RESULT[state]}'"
    elif state is not None:
        query += f" AND {attributes.STATE} = '{_quoted(state)}'"
    async for execution in client.list_workflows(query, limit=limit):
        run = _listed(execution)
        if execution.status is WorkflowExecutionStatus.FAILED:
            run = run.model_copy(update={"error": await _error_of(client, run)})
        yield run


async def _error_of(client: Client, run: ListedRun) -> str | None:
    try:
        await client.get_workflow_handle(run.id, run_id=run.run_id).result()
    except WorkflowFailureError as error:
        return error.cause.type if isinstance(error.cause, ApplicationError) else None
    return None


async def waiting(client: Client) -> AsyncIterator[tuple[str, PendingApproval]]:
    """What waits for a human, over all runs: run id and request. Needs a worker."""
    async for run in waiting_runs(client):
        for request in await pending(client, run.id):
            yield run.id, request


async def waiting_runs(client: Client) -> AsyncIterator[ListedRun]:
    """The runs that wait for a human, newest first. Where the search attribute that says so isn't
    registered: every run that has not ended."""
    running = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"
    try:
        by_state = f"{running} AND {attributes.STATE} = 'waiting'"
        found = [each async for each in client.list_workflows(by_state)]
    except RPCError as error:
        if error.status != RPCStatusCode.INVALID_ARGUMENT:
            raise
        found = [each async for each in client.list_workflows(running)]
    for execution in found:
        yield _listed(execution)


async def status(client: Client, run: str) -> RunStatus:
    """Where a run is. Needs a worker, as every query does.

    Raises:
        NoSuchRun, temporalio.service.RPCError
    """
    with named(run):
        found: RunStatus = await handle(client, run).query("status", result_type=RunStatus)
    return found


async def pending(client: Client, run: str) -> tuple[PendingApproval, ...]:
    """What the run waits for. Needs a worker."""
    with named(run):
        found: tuple[PendingApproval, ...] = await handle(client, run).query(
            "pending_approvals", result_type=tuple[PendingApproval, ...]
        )
    return found


async def transcript(client: Client, run: str) -> tuple[Message, ...]:
    """Every message of the run that it still holds."""
    messages: list[Message] = []
    while True:
        with named(run):
            page = await handle(client, run).query(
                "transcript", len(messages), result_type=TranscriptPage
            )
        messages.extend(page.messages)
        if len(messages) >= page.total or not page.messages:
            return tuple(messages)


async def call_of(client: Client, run: str, pending: PendingApproval) -> ToolCall | None:
    """The tool call that a request is about; None for what is not the model's call."""
    position = int(pending.id.partition("-")[0].rpartition(".")[2])
    for message in reversed(await transcript(client, run)):
        if isinstance(message, AssistantMessage):
            call = message.calls[position] if position < len(message.calls) else None
            return call if isinstance(call, ToolCall) else None
    return None


async def decide(client: Client, run: str, decision: Decision) -> None:
    """Send a decision and learn whether it was taken.

    Raises:
        DecisionRejected: the request is unknown or already decided.
        NoSuchRun
    """
    with named(run):
        try:
            await handle(client, run).execute_update("submit_decision", decision)
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            text = cause.message if isinstance(cause, ApplicationError | FailureError) else cause
            raise DecisionRejected(str(text)) from error


async def require_running(client: Client, run: str) -> None:
    """Raises:
    HasEnded, NoSuchRun
    """
    with named(run):
        described = await handle(client, run).describe()
    if described.status is not WorkflowExecutionStatus.RUNNING:
        raise _ended(run)


async def cancel(client: Client, run: str) -> None:
    """Ask a run to end; it keeps its work on a ref. One that has ended is left as it is."""
    with named(run):
        await handle(client, run).cancel()


async def ended(client: Client, run: str) -> None:
    """Wait until the run has ended, however it ends."""
    with suppress(WorkflowFailureError):
        await handle(client, run).result()


async def workers(
    client: Client, task_queue: str = TASK_QUEUE, *, but_us: bool = False
) -> frozenset[str]:
    """Identities of the workers of a task queue, as far as the server knows.

    From the workers' heartbeats, which say when one shuts down; an older server knows only who polled
    in the last minutes. One that was killed counts for up to two minutes.

    Args:
        but_us: Leave out a worker of this very client.
    """
    queue = _quoted(task_queue)
    try:
        listed = await client.workflow_service.list_workers(
            ListWorkersRequest(namespace=client.namespace, query=f"TaskQueue = '{queue}'"),
            timeout=timedelta(seconds=10),
        )
        identities = {
            beat.worker_identity
            for beat in (info.worker_heartbeat for info in listed.workers_info)
            if beat.status == WorkerStatus.WORKER_STATUS_RUNNING
            and time.time() - beat.heartbeat_time.ToSeconds() < _WORKER_SILENT_SECONDS
        }
    except RPCError:
        identities = await _pollers(client, task_queue)
    return frozenset(identities - {client.identity} if but_us else identities)


async def _pollers(client: Client, task_queue: str) -> set[str]:
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        ),
        timeout=timedelta(seconds=10),
    )
    return {poller.identity for poller in described.pollers}


@contextmanager
def named(run: str) -> Iterator[None]:
    """Turn the server's answer that there is no such run, or none that goes on, into `NoSuchRun`."""
    try:
        yield
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        if "already completed" in error.message:
            raise _ended(run) from error
        raise NoSuchRun(
            f"there is no run {run!r} in this namespace; `list` names those there are"
        ) from error


def _ended(run: str) -> HasEnded:
    return HasEnded(f"the run {run!r} has ended; `status` and `trace` tell how")


def _listed(execution: WorkflowExecution) -> ListedRun:
    found = execution.typed_search_attributes
    return ListedRun(
        id=execution.id,
        run_id=execution.run_id,
        status=execution.status.name.lower() if execution.status else "unknown",
        state=found.get(SearchAttributeKey.for_keyword(attributes.STATE)),
        repo=found.get(SearchAttributeKey.for_keyword(attributes.REPO)),
        model=found.get(SearchAttributeKey.for_keyword(attributes.MODEL)),
        step=found.get(SearchAttributeKey.for_int(attributes.STEP)),
        spend_usd=found.get(SearchAttributeKey.for_float(attributes.SPEND_USD)),
        started=execution.start_time,
        ended=execution.close_time,
    )


def one_line(goal: str) -> str:
    """The goal as the UI's summary: one line, within the server's limit."""
    line = " ".join(goal.split())
    encoded = line.encode()
    if len(encoded) <= _SUMMARY_BYTES:
        return line
    return encoded[: _SUMMARY_BYTES - 3].decode(errors="ignore") + "…"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
