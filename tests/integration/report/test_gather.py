"""A report is made of a real run's history, while it waits and after its end."""

import json
from typing import Any

from atif import Trajectory
from temporalio.client import Client

from io_harness.report.atif import trajectory
from io_harness.report.gather import gather
from io_harness.report.html import page
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
