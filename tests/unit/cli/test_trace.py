"""What the tracer makes of events, for the ends that a demo never has."""

from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.contrib.pydantic import pydantic_data_converter

from io_harness import trace
from io_harness.cli import render
from io_harness.cli.terminal import console
from io_harness.workflows.approvals import PendingApproval
from io_harness.workflows.payloads import ApprovalRequest, Reason


class Reader:
    """As much of a client as the tracer needs: how payloads are read."""

    data_converter = pydantic_data_converter


async def payloads(value: Any) -> Payloads:
    return Payloads(payloads=await pydantic_data_converter.encode([value]))


async def summary(text: str) -> Payload:
    [payload] = await pydantic_data_converter.encode([text])
    return payload


def failure(message: str, code: str) -> Failure:
    found = Failure(message=message)
    found.application_failure_info.type = code
    return found


async def steps(*events: HistoryEvent) -> list[trace.Step]:
    tracer = trace.Tracer(Reader())  # type: ignore[arg-type]
    return [step for event in events if (step := await tracer.feed(event)) is not None]


async def scheduled(activity: str, at: int) -> HistoryEvent:
    event = HistoryEvent(event_id=5, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    event.event_time.FromSeconds(at)
    event.activity_task_scheduled_event_attributes.activity_type.name = activity
    event.user_metadata.summary.CopyFrom(await summary("step 1: anthropic/one"))
    return event


def began(attempt: int) -> HistoryEvent:
    event = HistoryEvent(event_id=6, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    started = event.activity_task_started_event_attributes
    started.scheduled_event_id, started.attempt = 5, attempt
    if attempt > 1:
        started.last_failure.CopyFrom(failure("slow down", "RateLimited"))
    return event


async def test_a_call_that_failed_for_good_says_how_often_and_why() -> None:
    event = HistoryEvent(event_id=7, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED)
    event.event_time.FromSeconds(112)
    event.activity_task_failed_event_attributes.scheduled_event_id = 5
    event.activity_task_failed_event_attributes.failure.CopyFrom(failure("no", "Forbidden"))
    (step,) = await steps(await scheduled("complete", 100), began(3), event)
    assert isinstance(step, trace.FailedStep)
    assert (step.how, step.code, step.message) == ("failed", "Forbidden", "no")
    assert (step.attempts, step.last_failure, step.seconds) == (3, "slow down", 12)


async def test_a_time_out_is_a_failure_without_a_code() -> None:
    event = HistoryEvent(event_id=7, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT)
    event.activity_task_timed_out_event_attributes.scheduled_event_id = 5
    event.activity_task_timed_out_event_attributes.failure.message = "activity timed out"
    (step,) = await steps(await scheduled("use_tool", 100), began(1), event)
    assert isinstance(step, trace.FailedStep)
    assert (step.how, step.code) == ("timed_out", None)


async def test_an_activity_of_somebody_else_is_named() -> None:
    event = HistoryEvent(event_id=7, event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
    event.activity_task_completed_event_attributes.scheduled_event_id = 5
    (step,) = await steps(await scheduled("send_mail", 100), began(1), event)
    assert isinstance(step, trace.OtherStep)
    assert step.activity == "send_mail"


async def test_parts_of_a_run_are_counted_over_continue_as_new() -> None:
    first = HistoryEvent(event_id=1, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)
    started = first.workflow_execution_started_event_attributes
    started.workflow_id, started.original_execution_run_id = "w", "r1"
    started.input.CopyFrom(await payloads({"goal": "mend it"}))
    went = HistoryEvent(
        event_id=9, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
    )
    went.workflow_execution_continued_as_new_event_attributes.new_execution_run_id = "r2"
    seen = await steps(first, went, first)
    assert [s.kind for s in seen] == ["began", "continued", "began"]
    assert [s.part for s in seen if isinstance(s, trace.Began)] == [1, 2]


async def test_a_workflow_that_failed_has_a_code_and_no_result() -> None:
    event = HistoryEvent(event_id=9, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED)
    event.workflow_execution_failed_event_attributes.failure.CopyFrom(
        failure("no key", "MissingCredential")
    )
    (step,) = await steps(event)
    assert isinstance(step, trace.EndedStep)
    assert (step.status, step.code, step.message) == ("failed", "MissingCredential", "no key")
    assert trace.STEP.validate_json(trace.STEP.dump_json(step)) == step


async def test_children_and_cancellation_are_steps() -> None:
    child = HistoryEvent(
        event_id=4, event_type=EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED
    )
    attributes = child.child_workflow_execution_started_event_attributes
    attributes.workflow_execution.workflow_id = "w/sub"
    cancel = HistoryEvent(
        event_id=8, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
    )
    cancel.workflow_execution_cancel_requested_event_attributes.identity = "ann@host"
    seen = await steps(child, cancel)
    assert isinstance(seen[0], trace.ChildStep)
    assert (seen[0].workflow_id, seen[0].what) == ("w/sub", "started")
    assert isinstance(seen[1], trace.CancelAskedStep)
    assert seen[1].identity == "ann@host"


async def test_markup_in_what_a_model_or_tool_says_is_text(capsys: Any) -> None:
    event = HistoryEvent(event_id=9, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED)
    event.workflow_execution_failed_event_attributes.failure.CopyFrom(
        failure("[bold red]not markup[/bold red] [link=x]", "Code")
    )
    (step,) = await steps(event)
    assert isinstance(step, trace.EndedStep)
    console().print(render.result(step))
    assert "[bold red]not markup[/bold red] [link=x]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["diff", "command", "text"])
def test_an_approval_can_hide_nothing(capsys: Any, kind: Any) -> None:
    hiding = "rm -rf ~\x1b[2K\x1b[1G\rls\u202eevil\x9b2K"
    why = Reason(effect="ask", rule="default", layer="careful")
    request = ApprovalRequest(
        act="exec", target=hiding, tool="run_command", why=why, preview=hiding, preview_kind=kind,
        digest="0" * 64,
    )  # fmt: skip
    console().print(
        render.approval(PendingApproval(id="1.0-0", step=1, request=request, opened_at=0))
    )
    shown = capsys.readouterr().out
    assert shown.count("rm -rf ~\\x1b[2K\\x1b[1G\\rls\\u202eevil\\x9b2K") == 2
    assert not set("\x1b\r\u202e\x9b") & set(shown)
