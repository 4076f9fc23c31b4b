"""The end of a run reaches its whole tree, whatever the end; and a parent's continuation."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from io_harness import runs
from io_harness.workflows import agent_run
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.result import Outcome
from tests.agents import FIXED_CALC, Kinds, finish, fixes, task, writes
from tests.scripted import Turn, call, turn

from .conftest import Handle, Start
from .test_approvals import decide, pending
from .test_cancel_reset import processes, reset_after_first_tool
from .test_long_run import chain

TREE = {"agents": 10, "concurrent": 3, "depth": 2}
Sleepers = Callable[..., Awaitable[tuple[Handle, str]]]


@pytest.fixture
def kinds(tmp_path: Path) -> Kinds:
    return Kinds(tmp_path)


@pytest.fixture
def sleepers(start: Start, kinds: Kinds) -> Sleepers:
    """A run with a sub-agent whose own sub-agent runs a command, and what marks the command."""

    async def sleepers(*after: Turn, **contract: object) -> tuple[Handle, str]:
        mark = f"{uuid.uuid4().int % 10**9}"
        kinds.add("sleeper", turn(call("run_command", command=f"sleep 1{mark}")))
        below = call("spawn_agents", agents=[task("sleeper")] * 2, fails=True)
        kinds.add("middle", turn(below), turn(call("run_command", command="sleep 300")))
        spawned = call("spawn_agents", agents=[task("middle", agents=2)], wait=not after)
        tree = {**TREE, **contract.pop("containment", {})}  # type: ignore[dict-item]
        run = await start(turn(spawned), *after, containment=tree, agents=kinds.all, **contract)
        while len(processes(mark)) < 2:
            await asyncio.sleep(0.1)
        return run, mark

    return sleepers


async def gone(mark: str) -> float:
    """Seconds until no command with the mark is left."""
    begun = time.monotonic()
    while processes(mark):
        await asyncio.sleep(0.02)
        assert time.monotonic() - begun < 30, "the tree lives on"
    return time.monotonic() - begun


async def test_cancel_reaches_every_agent(sleepers: Sleepers, client: Client) -> None:
    run, mark = await sleepers()
    await run.cancel()
    print(f"the tree's commands were gone {await gone(mark):.2f} s after cancel")
    result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    for agent in ("1.0.1", "1.0.1/1.0.1", "1.0.1/1.0.2"):
        child = client.get_workflow_handle_for(AgentRun.run, f"{run.id}/{agent}")
        ended = await child.result()
        assert ended.outcome is Outcome.CANCELLED
        assert ended.ref is not None


async def test_termination_reaches_every_agent(sleepers: Sleepers, client: Client) -> None:
    run, mark = await sleepers()
    await run.terminate()
    print(f"the tree's commands were gone {await gone(mark):.2f} s after terminate")
    leaf = client.get_workflow_handle(f"{run.id}/1.0.1/1.0.2")
    assert (await leaf.describe()).status is WorkflowExecutionStatus.TERMINATED


async def test_a_run_that_finishes_ends_its_agents(sleepers: Sleepers, client: Client) -> None:
    asks = turn(call("ask_user", question="May I end?"))
    run, mark = await sleepers(asks, fixes(), finish())
    (asked,) = await pending(run)
    await decide(run, asked.id, "approve")
    await gone(mark)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.agents == 3
    middle = client.get_workflow_handle_for(AgentRun.run, f"{run.id}/1.0.1")
    assert (await middle.result()).outcome is Outcome.CANCELLED


async def test_the_end_of_the_trees_time_ends_every_agent(
    sleepers: Sleepers, client: Client
) -> None:
    asks = turn(call("ask_user", question="Is anybody there?"))
    run, mark = await sleepers(asks, containment={"wall_seconds": 15})
    result = await run.result()
    assert result.outcome is Outcome.BUDGET_CEILING_REACHED
    assert processes(mark) == set()
    middle = client.get_workflow_handle_for(AgentRun.run, f"{run.id}/1.0.1")
    assert (await middle.describe()).status is WorkflowExecutionStatus.COMPLETED


async def test_an_agent_killed_from_outside_costs_its_whole_share(
    sleepers: Sleepers, client: Client, start: Start
) -> None:
    run, mark = await sleepers(turn(call("collect_agents", fails=True)), fixes(), finish())
    await client.get_workflow_handle(f"{run.id}/1.0.1").terminate()
    await gone(mark)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.agents == 3
    assert result.descendants.usage.total > 900_000


@pytest.mark.parametrize("patience", [5, 1], ids=["goes_on", "waits"])
async def test_a_parent_continues_as_new_when_its_agents_have_ended(
    start: Start, kinds: Kinds, client: Client, monkeypatch: pytest.MonkeyPatch, patience: int
) -> None:
    """The server ends children with the execution that started them. A long history makes the parent
    wait for its agent, which here waits for a human; one that is less long doesn't."""
    monkeypatch.setattr(agent_run, "_EVENTS", 30)
    monkeypatch.setattr(agent_run, "_WITH_AGENTS", patience)
    asks = turn(call("ask_user", question="Now?"))
    kinds.add(
        "writer", asks, writes("n.txt", "one\n"), writes("m.txt", "two\n"), finish("all written")
    )
    spawned = call("spawn_agents", agents=[task("writer")], wait=False)
    looks = [turn(call("read_file", path="calc.py", end_line=i + 1)) for i in range(6)]
    got = call("collect_agents", merge="any", shows=("all written", "n.txt (added"))
    run = await start(
        turn(spawned), *looks, turn(got), fixes(), finish(), containment=TREE, agents=kinds.all
    )
    (asked,) = await pending(run)
    while patience > 1 and (await run.query(AgentRun.status)).step < 8:
        await asyncio.sleep(0.1)
    await decide(run, asked.id, "approve")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.agents == 1
    assert result.descendants.steps == 4
    assert len(await chain(client, run)) > 1


async def test_a_cancel_at_any_moment_of_the_starts_ends_the_run(
    start: Start, kinds: Kinds
) -> None:
    kinds.add("sleeper", turn(call("run_command", command="sleep 60")))

    async def cancelled_after(seconds: float) -> Outcome:
        spawned = call("spawn_agents", agents=[task("sleeper")] * 5)
        run = await start(turn(spawned), containment=TREE, agents=kinds.all)
        await asyncio.sleep(seconds)
        await run.cancel()
        return (await run.result()).outcome

    ended = await asyncio.gather(*(cancelled_after(0.3 * moment) for moment in range(6)))
    assert set(ended) == {Outcome.CANCELLED}


async def test_a_reset_before_the_spawn_starts_the_same_agent_anew(
    start: Start, kinds: Kinds, client: Client
) -> None:
    kinds.add("fixer", fixes(), finish())
    spawned = call("spawn_agents", agents=[task("fixer", FIXED_CALC)], shows=("success",))
    look = turn(call("read_file", path="calc.py"))
    run = await start(
        look, turn(spawned), finish(), containment=TREE, agents=kinds.all, policy="careful"
    )
    (before,) = await pending(run)
    agent = client.get_workflow_handle(f"{run.id}/2.0.1")
    first = (await agent.describe()).run_id
    again = await reset_after_first_tool(client, run)
    while (await agent.describe()).run_id == first:
        await asyncio.sleep(0.1)
    while not (asked := await runs.pending(client, run.id)):
        await asyncio.sleep(0.1)
    assert asked[0].id == before.id
    await again.signal("decide", {"request": asked[0].id, "verdict": "approve"})
    result = await again.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.agents == 1
