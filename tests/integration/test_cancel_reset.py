"""Cancel, terminate and reset: what dies, what stays, and what can go on."""

import asyncio
import os
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkerDeploymentVersion
from temporalio.worker import Worker, WorkerDeploymentConfig

from io_harness import runs
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.result import Outcome, RunResult
from tests.scripted import call, turn

from .conftest import BROKEN, FIXED, Handle, Repo, Start


def processes(mark: str) -> set[int]:
    """Pids of this host whose command line holds the mark."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.add(int(entry.name))
    return found - {os.getpid()}


@pytest.mark.timeout(180)
async def test_cancel_kills_the_tree_keeps_the_work_and_leaves_the_transcript(
    start: Start, repo: Repo, client: Client
) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    command = f"(sleep 1{mark} & sleep 2{mark}); true"
    edit = call("edit_file", path="calc.py", old="a - b", new="a + b")
    run = await start(turn(edit), turn(call("run_command", command=command)))
    while len(tree := processes(mark)) < 2:
        await asyncio.sleep(0.1)
    begun = time.monotonic()
    await run.cancel()
    while processes(mark):
        await asyncio.sleep(0.02)
        assert time.monotonic() - begun < 30, "the tree lives on"
    print(f"{len(tree)} processes were gone {time.monotonic() - begun:.2f} s after cancel")
    result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    assert result.ref is not None
    assert result.head != result.base
    assert repo.read("calc.py") == BROKEN
    messages = await runs.transcript(client, run.id)
    assert [m.role for m in messages[:3]] == ["user", "assistant", "tool"]


async def has_beaten(run: Handle) -> bool:
    """Whether the server has a heartbeat of an activity that runs."""
    pending = (await run.describe()).raw_description.pending_activities
    return any(each.HasField("last_heartbeat_time") for each in pending)


async def test_a_cancel_counts_although_the_activity_under_way_completes(
    start: Start, client: Client, repo: Repo
) -> None:
    """The SDK then gives the activity's result and forgets the cancellation. The worker here hears of
    one only with its heartbeats, 8 s apart: the set-up is through before the second."""
    queue = f"cancel-{uuid.uuid4().hex[:8]}"
    source = {"kind": "directory", "path": str(repo.path), "setup": "sleep 4"}
    run = await start(turn(call("list_files")), task_queue=queue, workspace=source)
    async with Worker(
        client,
        task_queue=queue,
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(deployment_name="io-harness", build_id="deaf"),
            use_worker_versioning=False,
        ),
        max_heartbeat_throttle_interval=timedelta(seconds=59),
    ):
        while not (processes("sleep 4") and await has_beaten(run)):
            await asyncio.sleep(0.05)
        await run.cancel()
        result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    assert result.spend.steps == 0


async def reset_after_first_tool(client: Client, run: Handle) -> WorkflowHandle[Any, RunResult]:
    """Reset to the workflow task in which the first tool call's result came; gives the new run."""
    history = [event async for event in run.fetch_history_events()]
    names = {
        e.event_id: e.activity_task_scheduled_event_attributes.activity_type.name for e in history
    }
    edited = next(
        e.event_id
        for e in history
        if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        and names[e.activity_task_completed_event_attributes.scheduled_event_id] == "use_tool"
    )
    finished = next(
        e.event_id
        for e in history
        if e.event_id > edited and e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    )
    reset = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=run.id, run_id=run.first_execution_run_id or ""
            ),
            reason="test",
            workflow_task_finish_event_id=finished,
            request_id=uuid.uuid4().hex,
        )
    )
    return client.get_workflow_handle(run.id, run_id=reset.run_id, result_type=RunResult)


@pytest.mark.timeout(180)
async def test_a_reset_run_goes_on_from_the_snapshot_of_that_event(
    start: Start, repo: Repo, client: Client
) -> None:
    """Terminated while its second call runs; reset to the turn before, it does the rest again."""
    edit = call("edit_file", path="calc.py", old="a - b", new="a + b")
    note = call("write_file", path="note.txt", content="once\n")
    run = await start(turn(edit), turn(note), turn(call("finish", summary="done")), policy={
        "preset": "unattended",
        "layers": [{"name": "asks", "rules": [
            {"effect": "ask", "act": "write", "target": "note.txt"}]}],
    })  # fmt: skip
    while not await run.query(AgentRun.pending_approvals):
        await asyncio.sleep(0.1)
    await run.terminate("to be reset")
    assert repo.read("calc.py") == BROKEN

    again = await reset_after_first_tool(client, run)
    while not (pending := await runs.pending(client, run.id)):
        await asyncio.sleep(0.1)
    await again.signal("decide", {"request": pending[0].id, "verdict": "approve"})
    result = await again.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert repo.read("note.txt") == "once\n"
