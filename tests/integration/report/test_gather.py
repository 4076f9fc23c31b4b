"""A report is made of a real run's history, while it waits and after its end."""

import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory
from temporalio.client import Client

from io_harness.report.atif import trajectory
from io_harness.report.gather import gather
from io_harness.report.html import page
from tests.agents import FIXED_CALC, Kinds, finish, fixes, task
from tests.integration.conftest import Start
from tests.integration.test_approvals import decide, pending
from tests.scripted import call, turn


async def test_live_and_closed(client: Client, start: Start) -> None:
    run = await start(
        turn(call("write_file", path=".env", content="x", fails=True), text="First the secrets."),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="add adds")),
        policy="careful",
        landing={"mode": "branch", "name": "fix/add"},
    )
    (waiting,) = await pending(run)
    live = await gather(client, run.id)
    assert live.ended is None
    assert [a.request for a in live.approvals] == [waiting.request]
    assert live.approvals[0].decision is None
    assert "Still under way" in page(live)
    Trajectory.model_validate(trajectory(live))

    await decide(run, waiting.id, "approve", by="ann", reason="looks right")
    result = await run.result()
    closed = await gather(client, run.id)
    assert closed.result == result
    (approval,) = closed.approvals
    assert (approval.who, approval.waited_seconds is not None) == ("ann", True)
    assert [step.outcome.kind for step in closed.refused] == ["done"]
    assert closed.verification == result.verification
    assert "+    return a + b" in closed.diff
    assert closed.spend == result.spend
    text = page(closed)
    for wanted in ("First the secrets.", "looks right", "fix/add", "add adds", ".env"):
        assert wanted in text
    found: dict[str, Any] = json.loads(json.dumps(trajectory(closed)))
    assert Trajectory.model_validate(found).extra == found["extra"]


async def test_sub_agents_are_in_it(client: Client, start: Start, tmp_path: Path) -> None:
    kinds = Kinds(tmp_path)
    kinds.add("fixer", fixes(), finish("mended by a sub-agent"))
    spawned = call("spawn_agents", agents=[task("fixer", FIXED_CALC, tokens=50_000)])
    run = await start(
        turn(spawned), finish(), agents=kinds.all,
        containment={"agents": 2, "concurrent": 1, "depth": 1},
    )  # fmt: skip
    result = await run.result()
    assert result.outcome == "success", result.reason
    report = await gather(client, run.id)
    (child,) = report.children
    assert child.began.workflow_id == f"{run.id}/1.0.1"
    assert child.result
    assert "mended by a sub-agent" in page(report)
    assert "of 1 sub-agents" in page(report)
    found = Trajectory.model_validate(trajectory(report))
    assert found.subagent_trajectories
    (embedded,) = found.subagent_trajectories
    assert embedded.session_id == child.began.workflow_id


async def test_continue_as_new_is_one_report(
    client: Client, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("io_harness.workflows.agent_run._EVENTS", 20)
    run = await start(
        turn(call("read_file", path="calc.py"), text="The first part."),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b"), text="The second."),
        turn(call("finish", summary="add adds")),
    )
    result = await run.result()
    assert result.outcome == "success", result.reason
    report = await gather(client, run.id)
    assert report.parts > 1
    assert report.spend == result.spend
    text = page(report)
    assert "The first part." in text
    assert "The second." in text
    Trajectory.model_validate(trajectory(report))
