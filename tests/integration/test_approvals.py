"""Human approval on the real server: whoever decides, however early, late or often."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from io_harness.plugin import harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision, LoggedDecision, PendingApproval
from io_harness.workflows.result import Outcome
from tests.scripted import Call, call, turn

from .conftest import BROKEN, FIXED, Handle, Repo, Start

TEMPORAL = Path(sys.executable).parent / "temporal"


def fix(**more: object) -> Call:
    return call("edit_file", path="calc.py", old="a - b", new="a + b", **more)  # type: ignore[arg-type]


def finish(**more: object) -> Call:
    return call("finish", summary="add adds now", **more)  # type: ignore[arg-type]


async def pending(run: Handle, count: int = 1) -> tuple[PendingApproval, ...]:
    while len(waiting := await run.query(AgentRun.pending_approvals)) < count:
        await asyncio.sleep(0.05)
    return waiting


async def decide(run: Handle, request: str, verdict: str, **more: object) -> None:
    decision = Decision.model_validate({"request": request, "verdict": verdict, **more})
    await run.signal(AgentRun.decide, decision)


Via = Literal["client", "command"]
both_ways = pytest.mark.parametrize("via", ["client", "command"])


async def decided(
    via: Via, address: str, run: Handle, request: str, verdict: str, **more: object
) -> None:
    """Decide by the SDK, or as a person does who pastes the line that the UI shows."""
    if via == "client":
        await decide(run, request, verdict, **more)
    else:
        await asyncio.to_thread(by_command, address, run, request, verdict, **more)


def by_command(address: str, run: Handle, request: str, verdict: str, **more: object) -> None:
    decision = json.dumps({"request": request, "verdict": verdict, **more})
    subprocess.run(
        [
            str(TEMPORAL), "workflow", "signal", "--address", address, "--workflow-id", run.id,
            "--name", "decide", "--input", decision,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip


async def decisions(run: Handle) -> tuple[LoggedDecision, ...]:
    so_far = await run.query(AgentRun.result_so_far)
    assert so_far is not None
    return so_far.decisions


ASKS = {"policy": "careful"}


@both_ways
async def test_an_approved_edit_lands(start: Start, repo: Repo, address: str, via: Via) -> None:
    run = await start(turn(fix()), turn(finish()), **ASKS)
    (asked,) = await pending(run)
    assert asked.request.act == "write"
    assert asked.request.target == "calc.py"
    assert "+    return a + b" in asked.request.preview
    await decided(via, address, run, asked.id, "approve", by="ann")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    log = await decisions(run)
    assert [(entry.effect, entry.decision.by) for entry in log] == [("applied", "ann")]


@both_ways
async def test_a_denial_has_no_effect_and_its_words_reach_the_model(
    start: Start, repo: Repo, address: str, via: Via
) -> None:
    words = "denied by bob: not this file"
    run = await start(
        turn(fix(fails=True, shows=(words,))),
        turn(call("read_file", path="calc.py", shows=("a - b",))),
        turn(finish(fails=True)),
        budget={"steps": 3},
        **ASKS,
    )
    (asked,) = await pending(run)
    await decided(via, address, run, asked.id, "deny", by="bob", reason="not this file")
    result = await run.result()
    assert result.outcome is Outcome.STEP_CAP_REACHED, result.reason
    assert result.head == result.base
    assert repo.read("calc.py") == BROKEN


@both_ways
async def test_a_rewritten_call_runs_as_rewritten(
    start: Start, repo: Repo, address: str, via: Via
) -> None:
    wrong = call("edit_file", path="calc.py", old="a - b", new="a * b", shows=("A human changed",))
    run = await start(turn(wrong), turn(finish()), **ASKS)
    (asked,) = await pending(run)
    right = {"path": "calc.py", "old": "a - b", "new": "a + b"}
    await decided(via, address, run, asked.id, "approve", edit=right)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED


async def test_a_rewritten_call_is_checked_again_and_a_deny_still_holds(
    start: Start, repo: Repo
) -> None:
    (repo.path / ".env").write_text("SECRET=1\n")
    run = await start(
        turn(fix(fails=True, shows=("refused",))), turn(finish(fails=True)), budget={"steps": 2},
        **ASKS,
    )  # fmt: skip
    (asked,) = await pending(run)
    await decide(run, asked.id, "approve", edit={"path": ".env", "old": "1", "new": "2"})
    result = await run.result()
    assert result.outcome is Outcome.STEP_CAP_REACHED, result.reason
    assert result.head == result.base


@both_ways
async def test_a_remembered_rule_spares_the_second_question(
    start: Start, repo: Repo, address: str, via: Via
) -> None:
    again = call("edit_file", path="calc.py", old="a * b", new="a + b")
    first = call("edit_file", path="calc.py", old="a - b", new="a * b")
    run = await start(turn(first), turn(again), turn(finish()), **ASKS)
    (asked,) = await pending(run)
    assert asked.request.suggestion is not None
    await decided(via, address, run, asked.id, "approve", remember=True)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.remembered == (asked.request.suggestion,)


async def test_several_asks_of_one_turn_are_shown_together(start: Start, repo: Repo) -> None:
    note = call("write_file", path="NOTES.md", content="n\n")
    run = await start(turn(fix(), note), turn(finish()), **ASKS)
    first, second = await pending(run, 2)
    assert {first.request.target, second.request.target} == {"calc.py", "NOTES.md"}
    await decide(run, second.id, "approve")
    await decide(run, first.id, "approve")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert (repo.path / "NOTES.md").exists()


async def test_expiry_denies_and_the_run_goes_on(start: Start, repo: Repo) -> None:
    run = await start(
        turn(fix(fails=True, shows=("nobody approved it in time",))),
        turn(finish(fails=True)),
        budget={"steps": 2, "working_seconds": 30},
        approval={"seconds": 1},
        **ASKS,
    )
    result = await run.result()
    assert result.outcome is Outcome.STEP_CAP_REACHED, result.reason
    assert repo.read("calc.py") == BROKEN


async def test_expiry_can_end_the_run(start: Start) -> None:
    approval = {"seconds": 1, "on_expiry": "end_run"}
    run = await start(turn(fix()), approval=approval, **ASKS)
    result = await run.result()
    assert result.outcome is Outcome.APPROVAL_EXPIRED
    assert result.ref is not None


async def test_waiting_is_not_working_time(start: Start) -> None:
    run = await start(turn(fix()), turn(finish()), budget={"working_seconds": 10}, **ASKS)
    (asked,) = await pending(run)
    await asyncio.sleep(4)
    await decide(run, asked.id, "approve")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.spend.working_seconds < 4


async def test_two_clients_decide_at_once_and_the_first_wins(start: Start) -> None:
    run = await start(turn(fix()), turn(finish(fails=True)), budget={"steps": 2}, **ASKS)
    (asked,) = await pending(run)
    sent = [
        Decision(request=asked.id, verdict="deny" if i % 2 else "approve", by=str(i))
        for i in range(6)
    ]
    outcomes = await asyncio.gather(
        *(run.execute_update(AgentRun.submit_decision, d) for d in sent),
        return_exceptions=True,
    )
    applied = [d for d, o in zip(sent, outcomes, strict=True) if o == "applied"]
    assert len(applied) == 1
    for outcome in outcomes:
        if outcome != "applied":
            assert isinstance(outcome, WorkflowUpdateFailedError)
            assert isinstance(outcome.cause, ApplicationError)
            assert outcome.cause.type == "UnknownRequest"
    log = await decisions(run)
    assert [entry.decision.by for entry in log] == [applied[0].by]
    await run.cancel()
    await run.result()


@both_ways
async def test_a_decision_before_the_request_exists_takes_effect_when_it_opens(
    start: Start, client: Client, address: str, via: Via
) -> None:
    """The id is known from a run over the same source: it holds the digest of what is shown."""
    earlier = await start(turn(fix()), **ASKS)
    (asked,) = await pending(earlier)
    await earlier.cancel()
    await earlier.result()
    queue = f"early-{via}"
    run = await start(turn(fix(), text="x"), turn(finish()), task_queue=queue, **ASKS)
    await decided(via, address, run, asked.id, "approve")  # no worker has begun the run
    async with harness_worker(client, task_queue=queue):
        result = await run.result()
        log = await decisions(run)
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert [entry.effect for entry in log] == ["early", "applied"]


@both_ways
async def test_a_decision_after_the_expiry_is_harmless_and_recorded(
    start: Start, repo: Repo, address: str, via: Via
) -> None:
    rule = {"effect": "ask", "act": "write", "target": "calc.py"}
    run = await start(
        turn(fix(fails=True, shows=("nobody approved it in time",))),
        turn(call("run_command", command="while ! test -e go; do sleep 0.1; done")),
        turn(finish(fails=True)),
        budget={"steps": 3},
        approval={"seconds": 1},
        policy={"preset": "unattended", "layers": [{"name": "asks", "rules": [rule]}]},
    )
    (asked,) = await pending(run)
    while await run.query(AgentRun.pending_approvals):
        await asyncio.sleep(0.1)
    await decided(via, address, run, asked.id, "approve")
    while "stale" not in (effects := [entry.effect for entry in await decisions(run)]):
        await asyncio.sleep(0.1)
    await run.cancel()
    result = await run.result()
    assert "applied" not in effects
    assert result.head == result.base
    assert repo.read("calc.py") == BROKEN


@both_ways
async def test_unknown_and_repeated_signals_are_harmless_and_recorded(
    start: Start, address: str, via: Via
) -> None:
    run = await start(turn(fix()), turn(finish()), **ASKS)
    (asked,) = await pending(run)
    await decided(via, address, run, "9.9-000000000000", "deny")
    await run.signal("decide", "not a decision at all")
    await asyncio.gather(
        decided(via, address, run, asked.id, "approve", by="ann"),
        decided(via, address, run, asked.id, "approve", by="bob"),
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    effects = [e.effect for e in await decisions(run)]
    assert effects[:2] == ["early", "applied"]
    assert set(effects[2:]) <= {"duplicate", "stale"}


async def test_landing_asks_once_with_the_whole_diff(start: Start, repo: Repo) -> None:
    run = await start(turn(fix(), finish()), landing={"mode": "apply", "approve": "ask"})
    (asked,) = await pending(run)
    assert asked.request.act == "land"
    assert "+    return a + b" in asked.request.preview
    assert repo.read("calc.py") == BROKEN
    await decide(run, asked.id, "approve")
    assert (await run.result()).outcome is Outcome.SUCCESS
    assert repo.read("calc.py") == FIXED


async def test_a_denied_landing_keeps_the_verified_work_on_a_ref(start: Start, repo: Repo) -> None:
    run = await start(turn(fix(), finish()), landing={"mode": "apply", "approve": "ask"})
    (asked,) = await pending(run)
    await decide(run, asked.id, "deny", reason="not today")
    result = await run.result()
    assert result.outcome is Outcome.DENIED
    assert "not today" in result.reason
    assert result.ref is not None
    assert repo.read("calc.py") == BROKEN


@pytest.mark.parametrize("restart", [False, True])
async def test_a_decision_while_no_worker_runs_is_not_lost(
    start: Start, client: Client, repo: Repo, restart: bool
) -> None:
    queue = f"approvals-{restart}"
    worker = harness_worker(client, task_queue=queue)
    async with worker:
        run = await start(turn(fix()), turn(finish()), task_queue=queue, **ASKS)
        (asked,) = await pending(run)
    if restart:  # a worker that comes back while the run still waits
        async with harness_worker(client, task_queue=queue):
            (asked,) = await pending(run)
    await decide(run, asked.id, "approve")
    async with harness_worker(client, task_queue=queue):
        result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED


async def test_a_question_is_answered_through_the_same_channel(start: Start) -> None:
    question = call("ask_user", question="tabs or spaces?", shows=("spaces",))
    run = await start(turn(question), turn(fix(), finish()))
    (asked,) = await pending(run)
    assert asked.request.act == "question"
    assert asked.request.preview == "tabs or spaces?"
    await decide(run, asked.id, "approve", reason="spaces")
    assert (await run.result()).outcome is Outcome.SUCCESS
