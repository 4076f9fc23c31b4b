"""Each outcome of a run, on the real server."""

import asyncio
from decimal import Decimal
from itertools import groupby

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from io_harness import __version__
from io_harness.plugin import TASK_QUEUE, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.result import LandConflict, Landed, Outcome
from tests.scripted import Call, call, turn

from .conftest import BROKEN, FIXED, Handle, Repo, Start


def fix() -> Call:
    return call("edit_file", path="calc.py", old="a - b", new="a + b")


def finish() -> Call:
    return call("finish", summary="add adds now")


async def reach(run: Handle, step: int) -> None:
    """Wait until the run has made so many model calls."""
    while (await run.query(AgentRun.status)).step < step:
        await asyncio.sleep(0.05)


async def test_success_lands_the_verified_change(start: Start, repo: Repo) -> None:
    run = await start(turn(call("read_file", path="calc.py")), turn(fix()), turn(finish()))
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert isinstance(result.landing, Landed)
    assert [f.path for f in result.landing.files] == ["calc.py"]
    assert result.verification is not None
    assert result.verification.snapshot == result.head
    assert result.spend.steps == 3
    assert result.spend.usd == Decimal("0.003")
    assert repo.git("status", "--porcelain") == "M calc.py"


async def test_a_failed_verification_goes_back_to_the_model(start: Start, repo: Repo) -> None:
    run = await start(
        turn(call("finish", summary="done?", fails=True, shows=("Verification failed", "5"))),
        turn(fix(), finish()),
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.spend.steps == 2


async def test_a_failed_run_leaves_the_source_untouched_and_its_work_on_a_ref(
    start: Start, repo: Repo
) -> None:
    run = await start(turn(fix()), turn(finish()), budget={"steps": 1})
    result = await run.result()
    assert result.outcome is Outcome.STEP_CAP_REACHED
    assert repo.read("calc.py") == BROKEN
    assert result.ref is not None
    assert result.head != result.base


async def test_branch_landing_commits_beside_the_working_tree(start: Start, repo: Repo) -> None:
    run = await start(turn(fix(), finish()), landing={"mode": "branch", "name": "fix/add"})
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == BROKEN
    assert repo.git("show", "fix/add:calc.py") == FIXED.strip()
    assert repo.git("rev-parse", "fix/add^") == repo.git("rev-parse", "main")


async def test_patch_landing_writes_a_file_that_git_applies(start: Start, repo: Repo) -> None:
    path = repo.path.parent / "out.patch"
    run = await start(turn(fix(), finish()), landing={"mode": "patch", "path": str(path)})
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == BROKEN
    repo.git("apply", str(path))
    assert repo.read("calc.py") == FIXED


async def test_a_source_that_moved_in_the_same_place_gets_nothing(start: Start, repo: Repo) -> None:
    sleeper = call("run_command", command="sleep 2")
    run = await start(turn(fix()), turn(sleeper), turn(finish()))
    await reach(run, 2)
    moved = BROKEN.replace("a - b", "a * b")
    (repo.path / "calc.py").write_text(moved)
    result = await run.result()
    assert result.outcome is Outcome.ESCALATED
    assert result.code == "LandConflict"
    assert isinstance(result.landing, LandConflict)
    assert result.landing.paths == ("calc.py",)
    assert repo.read("calc.py") == moved


async def test_a_source_that_moved_elsewhere_is_merged(start: Start, repo: Repo) -> None:
    run = await start(turn(fix()), turn(call("run_command", command="sleep 2")), turn(finish()))
    await reach(run, 2)
    (repo.path / "other.txt").write_text("new\n")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    assert repo.read("other.txt") == "new\n"


async def test_without_a_criterion_the_run_is_finished_and_nothing_is_applied(
    start: Start, repo: Repo
) -> None:
    run = await start(turn(fix(), finish()), verification={"kind": "none"})
    result = await run.result()
    assert result.outcome is Outcome.FINISHED
    assert result.landing is None
    assert repo.read("calc.py") == BROKEN


async def test_the_structured_answer_is_checked_and_returned(start: Start) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    run = await start(
        turn(call("finish", summary="s", answer={"n": "x"}, fails=True, shows=("n",))),
        turn(call("finish", summary="s", answer={"n": 3})),
        verification={"kind": "none"},
        output_schema=schema,
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.answer == {"n": 3}


@pytest.mark.parametrize(
    ("budget", "outcome"),
    [
        ({"steps": 2}, Outcome.STEP_CAP_REACHED),
        ({"tool_calls": 2}, Outcome.STEP_CAP_REACHED),
        ({"tokens": 250_000}, Outcome.TOKEN_BUDGET_EXCEEDED),
        ({"working_seconds": 3}, Outcome.TIME_BUDGET_EXCEEDED),
        ({"wall_seconds": 3}, Outcome.TIME_BUDGET_EXCEEDED),
    ],
)
async def test_each_budget_ends_the_run(
    start: Start, budget: dict[str, object], outcome: Outcome
) -> None:
    used = {"input": 100_000, "output": 20}
    steps = [
        turn(call("run_command", command=f"echo {i} && sleep 1"), usage=used) for i in range(12)
    ]
    result = await (await start(*steps, budget=budget)).result()
    assert result.outcome is outcome, result.reason
    assert result.spend.steps < 12


async def test_the_cost_budget_ends_the_run_before_it_is_passed(start: Start) -> None:
    used = {"input": 100, "output": 10_000}
    steps = [
        turn(call("list_files", path="."), usage=used, cost_usd="0.3", nudges=int(i == 2))
        for i in range(5)
    ]
    price = {"input": "10", "output": "30"}
    run = await start(*steps, budget={"usd": "0.91"}, model_more={"price": price})
    result = await run.result()
    assert result.outcome is Outcome.COST_BUDGET_EXCEEDED, result.reason
    assert result.spend.usd == Decimal("0.903")


async def test_a_departure_from_the_recording_is_loud(start: Start) -> None:
    run = await start(turn(call("read_file", path="calc.py", shows=("no such text",))), turn(fix()))
    result = await run.result()
    assert result.outcome is Outcome.ESCALATED
    assert result.code == "ReplayDiverged"
    assert "no such text" in result.reason


async def test_a_run_that_repeats_itself_is_nudged_and_then_stalled(start: Start) -> None:
    steps = [turn(call("read_file", path="calc.py"), nudges=int(i == 2)) for i in range(8)]
    result = await (await start(*steps)).result()
    assert result.outcome is Outcome.STALLED, result.reason
    assert result.spend.steps == 6


async def test_cancel_keeps_the_work_on_a_ref(start: Start, repo: Repo) -> None:
    run = await start(turn(fix()), turn(call("run_command", command="sleep 60")), turn(finish()))
    await reach(run, 2)
    await run.cancel()
    result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    assert result.head != result.base
    assert result.ref is not None
    assert repo.read("calc.py") == BROKEN


async def test_an_invalid_contract_fails_and_names_the_field(client: Client, worker: None) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await client.execute_workflow("AgentRun", {"goal": ""}, id="bad", task_queue=TASK_QUEUE)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "InvalidContract"
    assert "workspace: Field required" in cause.message


async def test_a_contract_of_a_later_release_is_refused_by_an_earlier_worker(
    start: Start, client: Client
) -> None:
    run = await start(turn(finish()))
    given = await run.query(AgentRun.contract)
    assert isinstance(given, dict)
    with pytest.raises(WorkflowFailureError) as caught:
        await client.execute_workflow(
            "AgentRun", {**given, "newest": "x"}, id="later", task_queue=TASK_QUEUE
        )
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "InvalidContract"
    assert "newest: unknown field" in cause.message
    assert f"this worker runs io-harness {__version__}" in cause.message


async def test_a_missing_source_fails_before_the_first_model_call(start: Start) -> None:
    run = await start(turn(finish()), workspace={"kind": "directory", "path": "/no/such/directory"})
    with pytest.raises(WorkflowFailureError) as caught:
        await run.result()
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "SourceNotFound"


async def test_neighbouring_reads_run_side_by_side_and_are_answered_in_order(
    start: Start, client: Client
) -> None:
    paths = ["calc.py", "test_calc.py", "calc.py", "test_calc.py"]
    reads = [call("read_file", path=path, shows=("def ",)) for path in paths]
    run = await start(turn(*reads), turn(fix(), finish()))
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    kinds = [event.event_type async for event in run.fetch_history_events()]
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    longest = max(len(list(group)) for kind, group in groupby(kinds) if kind == scheduled)
    assert longest == len(paths)


async def test_what_touches_the_workspace_runs_on_the_tools_queue(
    start: Start, client: Client
) -> None:
    queue = "sandbox-hosts"
    async with harness_worker(client, task_queue=queue):
        run = await start(turn(fix(), finish()), sandbox={"task_queue": queue})
        result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    queues: dict[str, set[str]] = {}
    async for event in run.fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            names = queues.setdefault(scheduled.task_queue.name, set())
            names.add(scheduled.activity_type.name)
    assert queues == {
        TASK_QUEUE: {"admit", "complete"},
        queue: {"prepare", "use_tool", "verify", "land", "release"},
    }


async def test_a_run_cancelled_while_it_is_prepared_says_so(start: Start, repo: Repo) -> None:
    source = {"kind": "directory", "path": str(repo.path), "setup": "sleep 60"}
    run = await start(turn(finish()), workspace=source)
    while "prepare" not in str((await run.describe()).raw_description.pending_activities):
        await asyncio.sleep(0.05)
    await run.cancel()
    result = await run.result()
    assert result.outcome is Outcome.CANCELLED
    assert result.spend.steps == 0


async def test_a_criterion_whose_program_does_not_exist_ends_the_run_soon(start: Start) -> None:
    run = await start(
        *(turn(call("finish", summary="done", fails=True)) for _ in range(5)),
        verification={"kind": "command", "run": "no-such-program --check"},
    )
    result = await run.result()
    assert result.outcome is Outcome.ESCALATED
    assert result.code == "CriterionErrored"
    assert "no-such-program" in result.reason
    assert result.spend.steps == 2
