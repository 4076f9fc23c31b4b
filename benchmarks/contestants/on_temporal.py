"""What the contestants on Temporal have in common."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, Plugin, WorkflowFailureError, WorkflowHandle
from temporalio.service import GrpcCompression

from .sdk_metrics import endpoint
from .task import Meter, Report, RunReport

Handle = WorkflowHandle[Any, Any]
RUN_SECONDS = 3_000


async def connect(address: str, plugins: Sequence[Plugin] = ()) -> Client:
    """All are connected in the way that is quickest on loopback."""
    return await Client.connect(
        address,
        plugins=list(plugins),
        runtime=endpoint().runtime,
        grpc_compression=GrpcCompression.NONE,
    )


async def report(
    client: Client, worker: AbstractAsyncContextManager[object], starts: Sequence[Any]
) -> Report:
    """Start the runs while the worker works, and tell how they went."""
    async with worker, endpoint().watched():
        meter = Meter()
        handles: list[Handle] = await asyncio.gather(*starts)
        return await finished(client, meter, handles)


async def finished(client: Client, meter: Meter, handles: Sequence[Handle]) -> Report:
    """Wait for the ends of all; what they cost is taken before their histories are looked at."""
    ends = await asyncio.gather(*(_end(handle) for handle in handles))
    told = meter.report(())
    metrics = await endpoint().metrics()
    runs = [
        RunReport(outcome=end, **await _history(client, handle))
        for end, handle in zip(ends, handles, strict=True)
    ]
    return told.model_copy(update={"runs": runs, "sdk": metrics})


async def _end(handle: Handle) -> str:
    try:
        async with asyncio.timeout(RUN_SECONDS):
            result = await handle.result()
    except WorkflowFailureError as error:
        return f"failed: {error.cause or error}"[:300]
    except TimeoutError:
        return f"no end in {RUN_SECONDS} s"
    outcome = str(getattr(result, "outcome", "done"))
    return "done" if outcome == "finished" else outcome


async def _history(client: Client, handle: Handle) -> dict[str, int]:
    """Executions, events and bytes of a run and its continuations."""
    executions = events = size = 0
    run_id = handle.first_execution_run_id or handle.result_run_id or ""
    while run_id:
        described = await client.get_workflow_handle(handle.id, run_id=run_id).describe()
        executions += 1
        events += described.history_length
        size += described.raw_description.workflow_execution_info.history_size_bytes
        last = await client.workflow_service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=client.namespace,
                execution=WorkflowExecution(workflow_id=handle.id, run_id=run_id),
                maximum_page_size=1,
            )
        )
        closing = last.history.events[0]
        continued = closing.workflow_execution_continued_as_new_event_attributes
        run_id = continued.new_execution_run_id
    return {"executions": executions, "events": events, "bytes": size}
