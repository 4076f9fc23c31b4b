"""Versioned workers: a run stays on its build, and moves to the current one at continue-as-new."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError

from io_harness.plugin import harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.scripted import call, turn, write_script

from .conftest import FIXED, VERIFY, Handle, Repo


def version(deployment: str, build_id: str) -> WorkerDeploymentVersion:
    return WorkerDeploymentVersion(deployment_name=deployment, build_id=build_id)


@asynccontextmanager
async def build(client: Client, deployment: str, build_id: str) -> AsyncIterator[None]:
    """A worker of a build, which is made the current one."""
    worker = harness_worker(client, task_queue=deployment, version=version(deployment, build_id))
    async with worker:
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=deployment,
            build_id=build_id,
            identity=client.identity,
        )
        for _ in range(200):  # the server knows a version some time after its worker's first poll
            try:
                await client.workflow_service.set_worker_deployment_current_version(
                    request, timeout=timedelta(seconds=10)
                )
                break
            except RPCError:
                await asyncio.sleep(0.2)
        else:
            raise AssertionError("the server never learned of the version")
        yield


async def start(
    client: Client, repo: Repo, deployment: str, *, asks: bool, folder: Path, landing: str = "auto"
) -> Handle:
    script = write_script(
        folder / f"{uuid.uuid4().hex}.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("read_file", path="calc.py")),
        turn(call("finish", summary="done")),
    )
    contract: dict[str, object] = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(repo.path)},
        "verification": VERIFY,
        "policy": "careful" if asks else "unattended",
        "landing": {"mode": "apply", "approve": landing},
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }
    return await client.start_workflow(
        AgentRun.run,
        TaskContract.model_validate(contract).model_dump(mode="json"),
        id=f"{deployment}-{uuid.uuid4().hex[:6]}",
        task_queue=deployment,
    )


async def builds(client: Client, run: Handle) -> list[set[str]]:
    """The builds that completed workflow tasks, for each execution of the run's chain."""
    found: list[set[str]] = []
    run_id = run.first_execution_run_id
    while run_id:
        handle = client.get_workflow_handle(run.id, run_id=run_id)
        events: list[HistoryEvent] = [event async for event in handle.fetch_history_events()]
        done = (e.workflow_task_completed_event_attributes.deployment_version for e in events)
        found.append({d.build_id for d in done if d.build_id})
        last = events[-1].workflow_execution_continued_as_new_event_attributes
        run_id = last.new_execution_run_id
    return found


@pytest.mark.timeout(240)
async def test_a_run_keeps_its_build_until_it_continues_as_new(
    client: Client, repo: Repo, tmp_path: Path
) -> None:
    deployment = f"harness-{uuid.uuid4().hex[:6]}"
    async with build(client, deployment, "old"):
        run = await start(client, repo, deployment, asks=True, folder=tmp_path)
        while not (pending := await run.query(AgentRun.pending_approvals)):
            await asyncio.sleep(0.1)
        async with build(client, deployment, "new"):
            await run.signal(AgentRun.decide, Decision(request=pending[0].id, verdict="approve"))
            result = await run.result()
            assert result.outcome is Outcome.SUCCESS, result.reason
            assert repo.read("calc.py") == FIXED
            assert await builds(client, run) == [{"old"}, {"new"}]
            fresh = await start(client, repo, deployment, asks=False, folder=tmp_path)
            await fresh.result()
            assert await builds(client, fresh) == [{"new"}]


@pytest.mark.timeout(240)
async def test_a_run_at_its_end_finishes_on_its_build_while_another_is_the_current_one(
    client: Client, repo: Repo, tmp_path: Path
) -> None:
    """It waits to land: no turn's end comes after that, at which it could move."""
    deployment = f"harness-{uuid.uuid4().hex[:6]}"
    async with build(client, deployment, "old"):
        run = await start(client, repo, deployment, asks=False, folder=tmp_path, landing="ask")
        while not (pending := await run.query(AgentRun.pending_approvals)):
            await asyncio.sleep(0.1)
        async with build(client, deployment, "new"):
            await run.signal(AgentRun.decide, Decision(request=pending[0].id, verdict="approve"))
            result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert await builds(client, run) == [{"old"}]
