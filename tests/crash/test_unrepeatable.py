"""A worker killed in a call that may have had an effect elsewhere: it is not repeated by itself."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.client import Client

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.integration.conftest import Handle
from tests.integration.site import Site, policy, serving
from tests.scripted import Call, call, turn, write_script

from .conftest import WorkerProcess


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as site:
        yield site


async def start(
    client: Client, worker: WorkerProcess, tmp_path: Path, spec: object, *calls: Call
) -> Handle:
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    (source / "a.txt").write_text("a\n")
    script = write_script(
        tmp_path / f"script-{uuid.uuid4().hex[:6]}.yaml",
        turn(*calls),
        turn(call("finish", summary="done")),
    )
    contract = {
        "goal": "Tell the server.",
        "workspace": {"kind": "directory", "path": str(source)},
        "verification": {"kind": "none"},
        "policy": spec,
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }
    return await client.start_workflow(
        AgentRun.run,
        TaskContract.model_validate(contract).model_dump(mode="json"),
        id=f"crash-{uuid.uuid4().hex[:8]}",
        task_queue=worker.task_queue,
    )


async def question(run: Handle) -> PendingApproval:
    async with asyncio.timeout(60):
        while not (waiting := await run.query(AgentRun.pending_approvals)):
            await asyncio.sleep(0.2)
    (found,) = waiting
    assert found.request.act == "retry"
    assert "may have the effect twice" in found.request.preview
    return found


async def decide(run: Handle, request: str, verdict: str) -> None:
    decision = Decision.model_validate({"request": request, "verdict": verdict, "by": "ann"})
    await run.execute_update(AgentRun.submit_decision, decision)


async def requests(site: Site, count: int) -> None:
    async with asyncio.timeout(60):
        while len(site.paths) < count:
            await asyncio.sleep(0.05)


async def attempts(run: Handle) -> int:
    """How often a call of `use_tool` began, as committed in history."""
    started = EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
    tools: set[int] = set()
    count = 0
    async for event in run.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "use_tool":
            tools.add(event.event_id)
        begun = event.activity_task_started_event_attributes
        if event.event_type == started and begun.scheduled_event_id in tools:
            count += begun.attempt
    return count


@pytest.mark.parametrize("verdict", ["retry", "skip", "abort"])
async def test_a_human_decides_on_a_lost_call_that_may_have_reached_the_network(
    client: Client, worker_process: WorkerProcess, tmp_path: Path, site: Site, verdict: str
) -> None:
    site.unanswered = 2 if verdict == "retry" else 1
    shows = {
        "retry": ("hello tell",),
        "skip": ("lost and it was not repeated; its effect is unknown",),
        "abort": (),
    }[verdict]
    tell = call("run_command", command=site.ask("tell"), fails=verdict == "skip", shows=shows)
    run = await start(client, worker_process, tmp_path, policy(("allow", site.target)), tell)
    await requests(site, 1)
    await worker_process.again()
    asked = await question(run)
    assert site.paths == ["tell"]
    await decide(run, asked.id, verdict)
    if verdict == "retry":  # and lost again: the second question is another one
        await requests(site, 2)
        await worker_process.again()
        again = await question(run)
        assert again.id != asked.id
        await decide(run, again.id, verdict)
    result = await run.result()
    match verdict:
        case "abort":
            assert result.outcome is Outcome.DENIED
            assert "run_command was lost" in result.reason
        case _:
            assert result.outcome is Outcome.FINISHED, result.reason
    assert site.paths == ["tell"] * (3 if verdict == "retry" else 1)


async def test_without_network_the_same_loss_is_made_good_without_a_question(
    client: Client, worker_process: WorkerProcess, tmp_path: Path
) -> None:
    work = "echo x >> lines.txt; sleep 4; cat lines.txt"
    run = await start(
        client,
        worker_process,
        tmp_path,
        "unattended",
        call("run_command", command=work, shows=("exit 0", "]\nx\n")),
    )
    async with asyncio.timeout(60):
        while not await _runs_a_tool(run):
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    await worker_process.again()
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert await attempts(run) == 2
    decisions = await run.query(AgentRun.result_so_far)
    assert decisions is not None
    assert decisions.decisions == ()


async def _runs_a_tool(run: Handle) -> bool:
    pending = (await run.describe()).raw_description.pending_activities
    begun = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return any(a.activity_type.name == "use_tool" and a.state == begun for a in pending)
