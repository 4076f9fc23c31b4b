"""A worker killed while each level of a tree of agents works: no agent starts twice, nothing is paid
twice, and the work arrives."""

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.agents import FIXED_CALC, Kinds, finish, fixes, task
from tests.integration.conftest import BROKEN, FIXED, TEST, VERIFY, Handle
from tests.scripted import Turn, call, turn, write_script

from .conftest import WorkerProcess
from .test_kill_worker import committed, events

LEVELS = ("", "/2.0.1", "/2.0.1/2.0.1")
EACH = {"admit": 1, "prepare": 1, "complete": 3, "verify": 1, "release": 1}


def works(then: Turn) -> tuple[Turn, ...]:
    """What an agent of each level does: a command, long enough to be killed in, and its part."""
    return turn(call("run_command", command="sleep 2")), then, finish()


def contract(folder: Path) -> Mapping[str, object]:
    source = folder / "source"
    source.mkdir()
    (source / "calc.py").write_text(BROKEN)
    (source / "test_calc.py").write_text(TEST)
    (source / ".gitignore").write_text("__pycache__/\n")
    kinds = Kinds(folder)
    kinds.add("leaf", *works(fixes()))
    below = call("spawn_agents", agents=[task("leaf", FIXED_CALC)], shows=("success",))
    kinds.add("middle", *works(turn(below)))
    below = call("spawn_agents", agents=[task("middle", FIXED_CALC, agents=1)], shows=("success",))
    script = write_script(folder / "root.yaml", *works(turn(below)))
    return {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(source)},
        "verification": VERIFY,
        "policy": "unattended",
        "model": {"provider": "replay", "name": "script", "base_url": script},
        "containment": {"agents": 2, "concurrent": 1, "depth": 2},
        "agents": kinds.all,
    }


async def in_its_command(client: Client, workflow_id: str) -> None:
    while True:
        try:
            described = await client.get_workflow_handle(workflow_id).describe()
        except RPCError:  # not started yet
            pending = []
        else:
            pending = list(described.raw_description.pending_activities)
        if any(each.activity_type.name == "use_tool" for each in pending):
            return
        await asyncio.sleep(0.1)


@pytest.mark.timeout(300)
async def test_a_worker_killed_at_every_level_of_a_tree(
    client: Client, worker_process: WorkerProcess, tmp_path: Path
) -> None:
    given = TaskContract.model_validate(contract(tmp_path)).model_dump(mode="json")
    run = await client.start_workflow(
        AgentRun.run,
        given,
        id=f"crash-{uuid.uuid4().hex[:8]}",
        task_queue=worker_process.task_queue,
    )
    for level in LEVELS:
        await in_its_command(client, run.id + level)
        await worker_process.again()
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert (tmp_path / "source" / "calc.py").read_text() == FIXED
    assert result.agents == 2
    assert result.spend.steps == 3
    assert result.descendants.steps == 6
    assert (result.spend.usage + result.descendants.usage).total == 9 * 120
    for level in LEVELS:
        await _once(client.get_workflow_handle_for(AgentRun.run, run.id + level), level)


async def _once(agent: Handle, level: str) -> None:
    """Each activity of an agent counted once, and each agent was started once."""
    leaf, root = level == LEVELS[-1], not level
    own = {"use_tool": 2} if leaf else {"use_tool": 1, "merge": 1}
    history = await events(agent)
    assert committed(history) == EACH | own | ({"land": 1} if root else {})
    started = EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
    assert sum(event.event_type == started for event in history) == (0 if leaf else 1)
    ended: RunResult = await agent.result()
    assert ended.outcome is Outcome.SUCCESS
