"""Answers to the queries `status` and `result_so_far`."""

from pydantic import JsonValue

from .approvals import LoggedDecision, PendingApproval
from .contract import Budget
from .egress import EgressCount
from .messages import ModelRef
from .model import Record
from .own_tools import Plan
from .result import IsolationReport, Spend, VerificationReport
from .state import RunState


class RunStatus(Record):
    state: str
    """preparing, working, verifying, landing, waiting, or the outcome of a run that ended."""
    goal: str
    step: int
    """Model calls made."""
    spend: Spend
    budget: Budget
    head: str | None
    pending: tuple[PendingApproval, ...]
    plan: Plan = Plan()


class ResultSoFar(Record):
    """What a run has to show before it has ended."""

    base: str | None
    head: str | None
    spend: Spend
    models: tuple[ModelRef, ...]
    verification: VerificationReport | None
    """The last one, passed or not."""
    last_words: str
    """Text of the model's last message."""
    decisions: tuple[LoggedDecision, ...]
    isolation: IsolationReport | None
    egress: tuple[EgressCount, ...] = ()
    answer: JsonValue = None


def status_of(state: RunState) -> RunStatus:
    return RunStatus(
        state="waiting" if state.tree.asked else state.activity,
        goal=state.contract.goal,
        step=state.step,
        spend=state.ledger.spend,
        budget=state.ledger.budget,
        head=state.head,
        pending=(*state.book.pending, *state.tree.pending),
        plan=state.plan,
    )


def result_so_far(state: RunState) -> ResultSoFar:
    words = (m.text for m in reversed(state.transcript.messages) if m.role == "assistant")
    return ResultSoFar(
        base=state.prepared.base,
        head=state.head,
        spend=state.ledger.spend,
        models=tuple(state.served),
        verification=state.verification,
        last_words=next(words, ""),
        decisions=state.book.log,
        isolation=state.prepared.isolation,
        egress=state.egress,
    )
