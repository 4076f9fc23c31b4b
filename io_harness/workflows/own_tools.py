"""Tools whose effect is in the workflow itself: finish, the plan, a question to a human."""

import hashlib
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from .messages import MalformedToolCall, ToolCall
from .model import Record, Strict
from .payloads import ApprovalRequest, Reason

FINISH = "finish"
UPDATE_PLAN = "update_plan"
ASK_USER = "ask_user"


class FinishArgs(Strict):
    """Claim that the goal is reached. The claim is then verified."""

    summary: str = Field(min_length=1, max_length=20_000)
    """What was done, for the person who asked."""
    answer: JsonValue = None
    """The structured answer, where one is asked for."""


class PlanItem(Strict):
    text: str = Field(min_length=1, max_length=500)
    status: Literal["todo", "doing", "done"] = "todo"

    @property
    def mark(self) -> str:
        return {"todo": "[ ]", "doing": "[~]", "done": "[x]"}[self.status]


class UpdatePlanArgs(Strict):
    """Replace the plan that people see beside the run."""

    items: tuple[PlanItem, ...] = Field(max_length=50)


class AskUserArgs(Strict):
    """Ask the human a question. The answer is advice; it grants nothing."""

    question: str = Field(min_length=1, max_length=4_000)


class Plan(Record):
    items: tuple[PlanItem, ...] = ()

    def markdown(self) -> str:
        return "\n".join(f"- {item.mark} {item.text}" for item in self.items)


def plan_of(call: ToolCall | MalformedToolCall) -> Plan | None:
    """The plan that a call sets; None for other calls, and for one that the run refused."""
    if not isinstance(call, ToolCall) or call.name != UPDATE_PLAN:
        return None
    try:
        return Plan(items=UpdatePlanArgs.model_validate(call.arguments).items)
    except ValidationError:
        return None


def question_request(question: str) -> ApprovalRequest:
    """A question as a request in the approval channel."""
    return ApprovalRequest(
        act="question",
        target="question",
        tool=ASK_USER,
        why=Reason(effect="ask", rule="the agent asks", layer="agent"),
        preview=question,
        preview_kind="text",
        digest=hashlib.sha256(f"question\n{question}".encode()).hexdigest(),
    )


def retry_request(tool: str, arguments: str, failure: str, times: int) -> ApprovalRequest:
    """A call that can't be repeated ended without a known result; a human says what now.

    Args:
        times: How often that happened to this call; each is a request of its own.
    """
    lost = failure if times == 1 else f"{failure}; attempt {times}"
    preview = (
        f"{tool} {arguments}\n\nThe call began, and its result was lost ({lost}). It may or may "
        "not have had its effect, and repeating it may have the effect twice. Decide retry, skip "
        "or abort."
    )
    return ApprovalRequest(
        act="retry",
        target=tool,
        tool=tool,
        why=Reason(effect="ask", rule="unrepeatable call", layer="harness"),
        preview=preview,
        preview_kind="text",
        digest=hashlib.sha256(preview.encode()).hexdigest(),
    )
