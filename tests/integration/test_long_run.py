"""A long run: history grows by the turn, not by the transcript."""

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from io_harness.workflows.result import Outcome
from tests.scripted import call, turn

from .conftest import Handle, Repo, Start

TURNS = 200


async def chain(client: Client, run: Handle) -> list[tuple[int, int]]:
    """Events and bytes of history of each execution in the run's chain."""
    sizes = []
    handle = client.get_workflow_handle(run.id, run_id=run.first_execution_run_id)
    while True:
        described = await handle.describe()
        info = described.raw_description.workflow_execution_info
        sizes.append((info.history_length, info.history_size_bytes))
        if described.status is not WorkflowExecutionStatus.CONTINUED_AS_NEW:
            return sizes
        events = (await handle.fetch_history()).events
        last = events[-1].workflow_execution_continued_as_new_event_attributes
        handle = client.get_workflow_handle(run.id, run_id=last.new_execution_run_id)


@pytest.mark.timeout(240)
async def test_history_grows_linearly_over_200_turns(
    start: Start, repo: Repo, client: Client
) -> None:
    (repo.path / "big.txt").write_text("".join(f"line {i:04}\n" for i in range(320)))  # 3.2 KB
    reads = [
        turn(call("read_file", path="big.txt", start_line=i + 1, end_line=320 - i % 7))
        for i in range(TURNS)
    ]
    end = turn(call("edit_file", path="calc.py", old="a - b", new="a + b"))
    run = await start(
        *reads,
        end,
        turn(call("finish", summary="done")),
        budget={"steps": TURNS + 10, "tokens": 50_000_000, "tool_calls": 1_000},
        model_more={"options": {"context_tokens": 1_000_000}},
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.spend.steps == TURNS + 2
    sizes = await chain(client, run)
    events = sum(e for e, _ in sizes) / result.spend.steps
    size = sum(b for _, b in sizes) / result.spend.steps
    print(
        f"{TURNS} turns of 3.2 KB: executions {sizes}, {events:.1f} events and {size:.0f} bytes a turn"
    )
    assert events <= 12.3
    assert size < 10_000
