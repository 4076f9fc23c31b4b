"""What a posted form says, as a decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.inbox.form import ARGUMENT, FormError, editable, read_decision
from io_harness.visible import visible
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.payloads import ApprovalRequest, Reason

PENDING = PendingApproval(
    id="1.0-abc",
    step=1,
    opened_at=0,
    request=ApprovalRequest(
        act="exec",
        target="make",
        tool="run_command",
        why=Reason(effect="ask", rule="default", layer="preset"),
        preview="make",
        preview_kind="command",
        digest="0" * 64,
    ),
)
CALL = ToolCall(id="c", name="run_command", arguments={"command": "make\nmake", "seconds": 5})


def read(form: dict[str, str], call: ToolCall = CALL) -> Decision:
    return read_decision(form, PENDING, call, "anna")


def approve(name: str, text: str) -> dict[str, str]:
    """An approval with one argument as typed."""
    return {"verdict": "approve", ARGUMENT + name: text}


@given(st.dictionaries(st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text()))
def test_a_form_sent_as_it_was_shown_changes_nothing(arguments: dict[str, object]) -> None:
    call = ToolCall.model_validate({"id": "c", "name": "n", "arguments": arguments})
    shown = {ARGUMENT + name: text for name, value in call.arguments.items()
             if (text := editable(value)) is not None}  # fmt: skip
    sent = {name: text.replace("\n", "\r\n") for name, text in shown.items()}
    assert read({"verdict": "approve", **sent}, call).edit is None


@given(st.text())
def test_no_text_that_a_form_would_lose_is_offered_for_change(text: str) -> None:
    assert editable(text) in (None, text)
    assert editable(text) is None or ("\r" not in text and visible(text) == text)


def test_what_is_changed_keeps_the_other_arguments_and_their_types() -> None:
    edit = read(approve("command", "make\r\ntest")).edit
    assert edit == {"command": "make\ntest", "seconds": 5}
    edit = read(approve("seconds", "7")).edit
    assert edit == {"command": "make\nmake", "seconds": 7}


def test_a_denial_carries_no_edit_and_remembers_nothing() -> None:
    denied = read({**approve("seconds", "7"), "verdict": "deny", "remember": "on"})
    assert (denied.edit, denied.remember) == (None, False)
    assert read({"verdict": "approve", "remember": "on"}).remember


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({}, "one of the buttons"),
        ({"verdict": "maybe"}, "one of the buttons"),
        (approve("seconds", "five"), "seconds: not valid JSON"),
        (approve("command", "x" * 9_000), "edit: .*at most"),
        ({"verdict": "deny", "reason": "x" * 10_001}, "reason: .*at most"),
    ],
)
def test_what_can_t_be_taken_names_the_field(form: dict[str, str], says: str) -> None:
    with pytest.raises(FormError, match=says):
        read(form)
