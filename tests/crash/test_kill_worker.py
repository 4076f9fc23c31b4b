"""A worker killed at any point of a run: the result is the same, and each effect happens once."""

import asyncio
import importlib.resources
import random
import shutil
import subprocess
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.contract import Apply, TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.integration.conftest import Handle

from .conftest import WorkerProcess

RUNS = 12
KILLS = 6


def project(path: Path) -> Path:
    source = importlib.resources.files("io_harness.demo").joinpath("project")
    with importlib.resources.as_file(source) as packaged:
        shutil.copytree(packaged, path, ignore=shutil.ignore_patterns("__pycache__"))
    return path


def demo_contract(path: Path) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "A credit note must cancel its invoice to the cent.",
            "workspace": {"kind": "directory", "path": str(path)},
            "verification": {"kind": "command", "run": "python -m unittest", "protect": ["tests"]},
            "policy": "unattended",
            "model": {
                "provider": "replay",
                "name": "recording",
                "base_url": "package:io_harness.demo/recording.yaml",
            },
        }
    )


async def start(client: Client, path: Path, task_queue: str) -> Handle:
    return await client.start_workflow(
        AgentRun.run,
        demo_contract(path).model_dump(mode="json"),
        id=f"crash-{uuid.uuid4().hex[:8]}",
        task_queue=task_queue,
    )


async def events(run: Handle) -> list[HistoryEvent]:
    return [event async for event in run.fetch_history_events()]


def committed(history: Iterable[HistoryEvent]) -> Counter[str]:
    """How often each kind of activity completed."""
    events = list(history)
    names = {
        e.event_id: e.activity_task_scheduled_event_attributes.activity_type.name for e in events
    }
    return Counter(
        names[e.activity_task_completed_event_attributes.scheduled_event_id]
        for e in events
        if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    )


def work(data_dir: Path, result: RunResult) -> list[str]:
    """The snapshots of a run, oldest first, by what made them."""
    log = subprocess.run(
        ["git", "log", "--reverse", "--format=%s", f"{result.base}..{result.head}"],
        cwd=data_dir / "snapshots.git",
        check=True,
        capture_output=True,
        text=True,
    )
    return log.stdout.splitlines()


@pytest.mark.timeout(400)
async def test_a_run_killed_in_the_middle_gives_the_same_result(
    client: Client, worker_process: WorkerProcess, data_dir: Path, tmp_path: Path
) -> None:
    untouched = project(tmp_path / "untouched")
    run = await start(client, untouched, worker_process.task_queue)
    reference = await run.result()
    expected = committed(await events(run))
    assert reference.outcome is Outcome.SUCCESS, reference.reason

    runs = []
    for index in range(RUNS):
        runs.append(await start(client, project(tmp_path / str(index)), worker_process.task_queue))
        await asyncio.sleep(0.15)  # so that each kill meets the runs at different events
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    ends = asyncio.gather(*(r.result() for r in runs))
    while worker_process.kills < KILLS and not ends.done():
        await asyncio.wait([ends], timeout=moments.uniform(0.5, 5))
        if not ends.done():
            await worker_process.again()
    assert worker_process.kills > 0

    for index, (handle, result) in enumerate(zip(runs, await ends, strict=True)):
        assert result.outcome is Outcome.SUCCESS, result.reason
        assert result.summary == reference.summary
        assert result.spend.model_dump(exclude={"working_seconds"}) == reference.spend.model_dump(
            exclude={"working_seconds"}
        )
        assert committed(await events(handle)) == expected
        assert work(data_dir, result) == work(data_dir, reference)
        for name in ("invoicing/money.py", "invoicing/tax.py"):
            assert (tmp_path / str(index) / name).read_bytes() == (untouched / name).read_bytes()


async def test_a_worker_killed_while_a_human_is_waited_for(
    client: Client, worker_process: WorkerProcess, tmp_path: Path
) -> None:
    path = project(tmp_path / "project")
    contract = demo_contract(path).model_copy(update={"landing": Apply(approve="ask")})
    run = await client.start_workflow(
        AgentRun.run,
        contract.model_dump(mode="json"),
        id=f"crash-{uuid.uuid4().hex[:8]}",
        task_queue=worker_process.task_queue,
    )
    while not (pending := await run.query(AgentRun.pending_approvals)):
        await asyncio.sleep(0.2)
    worker_process.kill()
    decision = Decision(request=pending[0].id, verdict="approve", by="ann")
    await run.signal(AgentRun.decide, decision)
    worker_process.start()
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert "sign = -1" in (path / "invoicing" / "money.py").read_text()
