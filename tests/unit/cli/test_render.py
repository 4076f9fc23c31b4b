"""What a step of a run looks like in the terminal."""

from datetime import UTC, datetime
from decimal import Decimal

from rich.console import Console

from io_harness import trace
from io_harness.cli import render
from io_harness.workflows.approvals import PendingApproval
from io_harness.workflows.messages import AssistantMessage, ModelRef, Text, ToolCall
from io_harness.workflows.own_tools import plan_of
from io_harness.workflows.payloads import ApprovalRequest, Completion
from io_harness.workflows.result import Usage
from io_harness.workflows.rules import Reason


def shown(*calls: ToolCall) -> str:
    message = AssistantMessage(
        parts=(Text(text="I plan."), *calls), served_by=ModelRef(provider="p", name="m")
    )
    completion = Completion(
        message=message, finish="tool_use", usage=Usage(input=10), cost_usd=Decimal(0)
    )
    step = trace.ModelStep(
        at=datetime(2026, 1, 1, tzinfo=UTC), seconds=1, attempts=1, summary="step 1",
        step=1, purpose="turn", completion=completion,
    )  # fmt: skip
    console = Console(width=100, record=True, file=None, color_system=None)
    with console.capture() as captured:
        found = render.step(step, verbose=False)
        assert found is not None
        console.print(found)
    return captured.get()


def plan_call(*items: dict[str, object]) -> ToolCall:
    return ToolCall.model_validate(
        {"id": "1", "name": "update_plan", "arguments": {"items": list(items)}}
    )


def test_a_plan_is_shown_with_the_step_that_sets_it() -> None:
    text = shown(plan_call({"text": "read", "status": "done"}, {"text": "mend"}))
    assert "[x] read" in text
    assert "[ ] mend" in text


def test_a_plan_that_the_run_refused_is_not_shown() -> None:
    call = plan_call({"text": "", "status": "done"})
    assert plan_of(call) is None
    assert "[x]" not in shown(call)


def test_nothing_in_a_request_hides_moves_or_reorders_text() -> None:
    hostile = "a\x1b[2K\r\u202e\u200b\u3164\u2800\ufe0f\U000e0041[/]"
    request = ApprovalRequest(
        act="exec", target=hostile, tool=hostile, preview=hostile, preview_kind="command",
        why=Reason(effect="ask", rule=hostile, layer=hostile), digest="0" * 64,
    )  # fmt: skip
    pending = PendingApproval(id="1", step=1, request=request, opened_at=0, agent=hostile)
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(render.approval(pending, hostile))
    told = captured.get()
    assert told.count("a\\x1b[2K\\r\\u202e\\u200b\\u3164\\u2800") == 7
    assert not set("\x1b\r\u202e\u200b\u3164\u2800\U000e0041") & set(told)
