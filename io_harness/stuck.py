"""Runs whose workflow task fails again and again: a bug in workflow code, or a payload that the
worker can't read. Such a run is not lost; it goes on when a worker that can takes it."""

import asyncio
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from io_harness import runs

_LAST_EVENTS = 10
_AT_ONCE = 8
_HARMLESS = (WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,)
"""A signal came in between; the server begins the task anew at once."""


@dataclass(frozen=True)
class Stuck:
    run: str
    attempt: int
    """Of the workflow task that is tried now."""
    why: str
    """The failure that history has of it."""


async def stuck_runs(client: Client, *, limit: int = 100) -> tuple[Stuck, ...]:
    """Those among the newest running runs.

    Args:
        limit: How many runs are looked at.
    """
    places = asyncio.Semaphore(_AT_ONCE)

    async def look(run: str) -> Stuck | None:
        async with places:
            return await _stuck(client, run)

    query = f"WorkflowType = '{runs.WORKFLOW}' AND ExecutionStatus = 'Running'"
    names = [each.id async for each in client.list_workflows(query, limit=limit)]
    found = await asyncio.gather(*map(look, names))
    return tuple(each for each in found if each is not None)


async def _stuck(client: Client, run: str) -> Stuck | None:
    described = (await runs.handle(client, run).describe()).raw_description
    task = described.pending_workflow_task
    if task.attempt < 2:
        return None
    why = await _last_failure(client, described.workflow_execution_info.execution)
    return Stuck(run, task.attempt, why) if why is not None else None


async def _last_failure(client: Client, execution: WorkflowExecution) -> str | None:
    """Why the last workflow task failed; None if it timed out, or failed harmlessly."""
    page = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace, execution=execution, maximum_page_size=_LAST_EVENTS
        )
    )
    for event in page.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return None
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            if failed.cause in _HARMLESS:
                return None
            return failed.failure.message or WorkflowTaskFailedCause.Name(failed.cause)
    return None
