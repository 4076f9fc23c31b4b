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
from io_harness.workflows.payloads import ApprovalRequest
from io_harness.workflows.rules import Reason

from .schemas import BadSchema, Mismatch, check_value
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
    ask: bool
    """Whether a human may be asked. Else every question is declined."""
    open: list[ApprovalRequest] = field(default_factory=list)
    """What a human must be asked before the call can be made again."""

    def answer(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """What the server hears."""
        if not self.ask or not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        schema: dict[str, Any] = dict(params.requested_schema)
        request = self._request(params.message, schema)
        words = self.answer_to(request.digest)
        if words is None:
            self.open.append(request)
            return types.ElicitResult(action="cancel")
        content = content_of(words, schema)
        if content is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=content)

    def _request(self, message: str, schema: dict[str, Any]) -> ApprovalRequest:
        wanted = json.dumps(schema.get("properties", {}), ensure_ascii=False)
        preview = (
            f"The MCP server {self.server} asks, while its tool {self.tool!r} is called:\n"
            f"{plain(message, _QUESTION)}\n\nIt wants: {plain(wanted, _QUESTION)}\n"
            "Approve with the answer as the reason (its text, or a JSON object of the fields); your "
            "words go to the server."
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
    """The answer as the form that the server asked for; None where it doesn't fit."""
    try:
        whole = json.loads(words)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and _fits(schema, whole):
        return whole
    properties = schema.get("properties", {})
    if len(properties) != 1:
        return None
    ((name, declared),) = properties.items()
    for value in _readings(words.strip(), declared):
        if _fits(schema, {name: value}):
            return {name: value}
    return None


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
