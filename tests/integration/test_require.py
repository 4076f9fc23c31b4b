"""What a contract requires of the sandbox, on the real server."""

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from io_harness import sandbox
from io_harness.workflows.result import Outcome
from tests.scripted import Turn, turn

from .conftest import Handle, Start
from .test_tool_calls import finish, fix

UNMET: sandbox.Property = "memory"
"""Polled, so that no backend here enforces it."""


def script() -> Turn:
    return turn(fix(), finish())


async def model_calls(run: Handle) -> int:
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    return sum(
        event.activity_task_scheduled_event_attributes.activity_type.name == "complete"
        for event in (await run.fetch_history()).events
        if event.event_type == scheduled
    )


async def test_a_run_that_requires_more_is_refused_before_its_first_model_call(
    start: Start,
) -> None:
    if not (await sandbox.probe()).missing((UNMET,)):
        pytest.skip("this host enforces it")
    run = await start(script(), sandbox={"require": ["fs_write", UNMET]})
    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "SandboxTooWeak"
    assert f"does not enforce {UNMET}." in cause.message
    assert "apt install bubblewrap" in cause.message
    assert await model_calls(run) == 0


async def test_a_run_that_accepts_less_is_not(start: Start) -> None:
    run = await start(script(), sandbox={"require": []})
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert result.isolation is not None
    assert await model_calls(run) == 1
