"""Questions that a server puts to the user (elicitation): declined, or answered by a human through
the run's approval channel.

A question ends the attempt at the call: the human is asked, for as long as it takes, and the call is
made again with the answer at hand.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from pydantic import JsonValue

from io_harness.activities.gate import request_digest
from io_harness.activities.schemas import BadSchema, Mismatch, check_value
from io_harness.workflows.mcp_contract import QuestionsAre
from io_harness.workflows.payloads import ApprovalRequest
from io_harness.workflows.rules import Reason

from .text import plain

MAX_ROUNDS = 8
_QUESTION = 4_000
_YES = frozenset({"yes", "y", "true", "1"})
_NO = frozenset({"no", "n", "false", "0"})

AnswerTo = Callable[[str], str | None]
"""A human's words to the question of that digest; None where none were given yet."""


@dataclass
class Questions:
    """Those of one call."""

    server: str
    tool: str
    arguments: dict[str, JsonValue]
    answer_to: AnswerTo
    are: QuestionsAre
    open: list[ApprovalRequest] = field(default_factory=list)
    """What a human must be asked before the call can be made again."""

    def answer(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """What the server hears."""
        if self.are == "decline" or not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        schema: dict[str, Any] = dict(params.requested_schema)
        words = "" if self.are == "defaults" else self._words(params.message, schema)
        if words is None:
            return types.ElicitResult(action="cancel")
        content = content_of(words, schema)
        if content is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=content)

    def _words(self, message: str, schema: dict[str, Any]) -> str | None:
        """A human's; None where they are to be asked first."""
        request = self._request(message, schema)
        words = self.answer_to(request.digest)
        if words is None:
            self.open.append(request)
        return words

    def _request(self, message: str, schema: dict[str, Any]) -> ApprovalRequest:
        wanted = json.dumps(schema.get("properties", {}), ensure_ascii=False)
        preview = (
            f"The MCP server {self.server} asks, while its tool {self.tool!r} is called:\n"
            f"{plain(message, _QUESTION)}\n\nIt wants: {plain(wanted, _QUESTION)}\n"
            "Approve with the answer as the reason (its text, or a JSON object of the fields; what it "
            "leaves out takes its default); your words go to the server."
        )
        target = f"question of {self.server}"
        return ApprovalRequest(
            act="question",
            target=target,
            tool=self.tool,
            why=Reason(effect="ask", rule="the MCP server asks", layer="mcp"),
            preview=preview,
            preview_kind="text",
            digest=request_digest("question", target, self.arguments, preview),
        )


def content_of(words: str, schema: dict[str, Any]) -> dict[str, Any] | None:
    """The answer as the form that the server asked for; None where it doesn't fit. What the answer
    leaves out takes the default that the form declares (SEP-1034)."""
    properties = schema.get("properties", {})
    try:
        whole = json.loads(words or "{}")
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict):
        filled = _defaults(properties) | whole
        if _fits(schema, filled):
            return filled
    if len(properties) != 1:
        return None
    ((name, declared),) = properties.items()
    for value in _readings(words.strip(), declared):
        if _fits(schema, {name: value}):
            return {name: value}
    return None


def _defaults(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: declared["default"]
        for name, declared in properties.items()
        if isinstance(declared, dict) and "default" in declared
    }


def _readings(words: str, declared: Any) -> list[JsonValue]:
    kind = declared.get("type") if isinstance(declared, dict) else None
    if kind == "boolean":
        return [word in _YES for word in [words.lower()] if word in _YES | _NO]
    if kind in ("integer", "number"):
        try:
            return [int(words) if kind == "integer" else float(words)]
        except ValueError:
            return []
    return [words]


def _fits(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    try:
        check_value({"type": "object", **schema}, value)
    except (Mismatch, BadSchema):
        return False
    return True
