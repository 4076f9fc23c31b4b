"""The decision that a posted form says."""

import json
from collections.abc import Mapping
from typing import Literal, cast, get_args

from pydantic import JsonValue, ValidationError

from io_harness.visible import visible
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.messages import ToolCall

Verdict = Literal["approve", "deny", "retry", "skip", "abort"]
ARGUMENT = "argument:"


class FormError(ValueError):
    """The form can't be taken; the message says which field, and what to do."""


def read_decision(
    form: Mapping[str, str], pending: PendingApproval, call: ToolCall | None, by: str
) -> Decision:
    """
    Args:
        call: What the form's arguments are compared with; changed ones are an edit.

    Raises:
        FormError
    """
    verdict = form.get("verdict")
    if verdict not in get_args(Verdict):
        raise FormError("Press one of the buttons.")
    reason = _lines(form.get("reason", "")).strip()
    if pending.request.act == "question" and verdict == "approve" and not reason:
        raise FormError("Write the answer first.")
    try:
        return Decision(
            request=pending.id,
            verdict=cast(Verdict, verdict),
            by=by,
            reason=reason,
            edit=_edit(form, call) if call and verdict == "approve" else None,
            remember=verdict == "approve" and "remember" in form,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise FormError(f"{first['loc'][0]}: {first['msg']}") from error


def editable(value: JsonValue) -> str | None:
    """An argument as the text that a person changes: a text as it is, anything else as JSON. None for
    a text that a browser would not give back as it was."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return value if visible(value) == value else None


def _edit(form: Mapping[str, str], call: ToolCall) -> dict[str, JsonValue] | None:
    changed: dict[str, JsonValue] = {}
    for name, value in call.arguments.items():
        given, shown = form.get(ARGUMENT + name), editable(value)
        if given is None or shown is None or _lines(given) == shown:
            continue
        changed[name] = _lines(given) if isinstance(value, str) else _json(name, given)
    return {**call.arguments, **changed} if changed else None


def _json(name: str, text: str) -> JsonValue:
    try:
        return cast(JsonValue, json.loads(text))
    except ValueError as error:
        raise FormError(f"{name}: not valid JSON ({error})") from error


def _lines(text: str) -> str:
    """Undo the line ends that browsers write into forms."""
    return text.replace("\r\n", "\n")
