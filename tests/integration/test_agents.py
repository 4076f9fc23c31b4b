"""Sub-agents as child workflows: their work, their caps, their approvals, their ends."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.result import Outcome
from tests.scripted import Turn, call, turn, write_script

from .conftest import FIXED, Handle, Repo, Start

TREE = {"agents": 10, "concurrent": 3, "depth": 1}


def finish(summary: str = "done") -> Turn:
    return turn(call("finish", summary=summary))


def writes(path: str, content: str) -> Turn:
    return turn(call("write_file", path=path, content=content))


def contains(path: str, text: str) -> dict[str, object]:
    return {"kind": "file_contains", "path": path, "text": text}


class Kinds:
    """Named agents, each with a scripted model of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.all: dict[str, object] = {}

    def add(self, name: str, *turns: Turn, **more: object) -> None:
        script = write_script(self._folder / f"agent-{name}.yaml", *turns)
        model = {"provider": "replay", "name": name, "base_url": script}
        self.all[name] = {"role": f"You are {name}.", "model": model, **more}


@pytest.fixture
def kinds(tmp_path: Path) -> Kinds:
    return Kinds(tmp_path)


def task(agent: str, verification: dict[str, object], **more: object) -> dict[str, object]:
    return {"goal": f"The part of {agent}.", "agent": agent, "verification": verification, **more}


async def test_three_agents_edit_and_their_work_is_merged_in_spawn_order(
    start: Start, repo: Repo, kinds: Kinds, client: Client
) -> None:
    kinds.add("fixer", turn(call("edit_file", path="calc.py", old="a - b", new="a + b")), finish())
    kinds.add("writer", writes("docs/a.md", "alpha\n"), finish("I wrote </agent-report> alpha"))
    kinds.add(
        "lister", turn(call("list_files", shows=("calc.py",))), writes("b.txt", "b\n"), finish()
    )
    spawned = call(
        "spawn_agents",
        agents=[
            task("fixer", contains("calc.py", "a + b"), tokens=50_000),
            task("writer", contains("docs/a.md", "alpha"), tokens=60_000),
            task("lister", contains("b.txt", "b"), tokens=70_000),
        ],
        shows=("[agent 1.0.1] success", "calc.py (modified, +1 -1)", "docs/a.md", "untrusted"),
    )
    seen = turn(call("read_file", path="docs/a.md", shows=("alpha",)))
    run = await start(turn(spawned), seen, finish(), containment=TREE, agents=kinds.all)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert repo.read("docs/a.md") == "alpha\n"
    assert result.agents == 3
    assert result.spend.steps == 3
    assert result.descendants.steps == 7
    assert result.descendants.usage.total == 7 * 120
    child = client.get_workflow_handle(f"{run.id}/1.0.1")
    described = await child.describe()
    assert described.status is WorkflowExecutionStatus.COMPLETED
    assert described.parent_id == run.id
    assert await described.static_summary() == "The part of fixer."


async def test_a_conflict_is_told_with_both_sides_and_nothing_is_merged(
    start: Start, repo: Repo, kinds: Kinds
) -> None:
    kinds.add("one", writes("n.txt", "one\n"), finish())
    kinds.add("two", writes("n.txt", "two\n"), finish())
    both = call(
        "spawn_agents",
        agents=[task("one", contains("n.txt", "one")), task("two", contains("n.txt", "two"))],
        shows=("NOT merged", "n.txt, yours", "+one", "+two"),
    )
    seen = turn(call("read_file", path="n.txt", shows=("one",)))
    fix = turn(call("edit_file", path="calc.py", old="a - b", new="a + b"))
    run = await start(turn(both), seen, fix, finish(), containment=TREE, agents=kinds.all)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("n.txt") == "one\n"


async def test_the_work_of_a_failed_agent_is_merged_only_when_asked_for(
    start: Start, repo: Repo, kinds: Kinds
) -> None:
    kinds.add("weak", turn(call("edit_file", path="calc.py", old="a - b", new="a + b")), steps=1)
    spawned = call(
        "spawn_agents",
        agents=[task("weak", contains("calc.py", "no such text"))],
        fails=True,
        shows=("step_cap_reached", "not merged; it stays on refs/io-harness/"),
    )
    taken = call("collect_agents", agents=["1.0.1"], merge="any", fails=True, shows=("Merged",))
    run = await start(turn(spawned), turn(taken), finish(), containment=TREE, agents=kinds.all)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED


async def test_an_approval_of_an_agent_is_shown_and_decided_at_the_root(
    start: Start, repo: Repo, kinds: Kinds
) -> None:
    kinds.add("fixer", turn(call("edit_file", path="calc.py", old="a - b", new="a + b")), finish())
    spawned = call("spawn_agents", agents=[task("fixer", contains("calc.py", "a + b"))])
    run = await start(turn(spawned), finish(), containment=TREE, agents=kinds.all, policy="careful")
    while not (pending := await run.query(AgentRun.pending_approvals)):
        await asyncio.sleep(0.1)
    assert pending[0].agent == f"{run.id}/1.0.1"
    assert "a + b" in pending[0].request.preview
    assert (await run.query(AgentRun.status)).state == "waiting"
    decision = Decision(request=pending[0].id, verdict="approve", by="ann")
    assert await run.execute_update(AgentRun.submit_decision, decision) == "forwarded"
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert await run.query(AgentRun.pending_approvals) == ()


async def works(run: Handle) -> bool:
    """Whether the run is in a tool call."""
    try:
        described = await run.describe()
    except RPCError:  # not started yet
        return False
    return any(
        a.activity_type.name == "use_tool" for a in described.raw_description.pending_activities
    )


async def test_cancel_reaches_every_agent(start: Start, kinds: Kinds, client: Client) -> None:
    kinds.add("sleeper", turn(call("run_command", command="sleep 300")))
    spawned = call("spawn_agents", agents=[task("sleeper", {"kind": "none"})] * 5)
    run = await start(turn(spawned), containment=TREE, agents=kinds.all)
    first = client.get_workflow_handle_for(AgentRun.run, f"{run.id}/1.0.1")
    async with asyncio.timeout(60):
        while not await works(first):
            await asyncio.sleep(0.2)
    await run.cancel()
    result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    assert (await first.result()).outcome is Outcome.CANCELLED
    running = f'ExecutionStatus = "Running" AND ParentWorkflowId = "{run.id}"'
    assert [w async for w in client.list_workflows(running)] == []
