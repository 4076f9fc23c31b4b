"""Who was asked what, and who answered: requests and decisions of a history brought together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from io_harness import trace
from io_harness.workflows.approvals import Decision
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.own_tools import ASK_USER
from io_harness.workflows.payloads import ApprovalRequest, NeedsApproval

DIGEST_CHARS = 12
"""How much of a request's digest its id ends in."""


@dataclass(frozen=True)
class Approval:
    """One request. What the agent asks, and what a lost call asks, is not in history but for the
    decision; then `request` is None."""

    id: str
    """Of the decision; of an undecided request the digest alone."""
    request: ApprovalRequest | None
    question: str
    """What was asked, where there is no `request`."""
    asked: datetime | None
    decision: Decision | None
    decided: datetime | None
    identity: str
    """The client that sent the decision."""
    late: tuple[Decision, ...] = ()
    """Decisions that came after the first one and had no effect."""

    @property
    def who(self) -> str:
        if self.decision is None:
            return ""
        return self.decision.by or self.identity

    @property
    def waited_seconds(self) -> float | None:
        if self.asked is None or self.decided is None:
            return None
        return max((self.decided - self.asked).total_seconds(), 0)


def approvals_of(steps: Sequence[trace.Step]) -> tuple[Approval, ...]:
    """All requests in the order in which they were asked, each with the decision that took effect."""
    asked = {request.digest[:DIGEST_CHARS]: (at, request) for at, request in _requests(steps)}
    decided: dict[str, list[trace.DecidedStep]] = {}
    for step in steps:
        if isinstance(step, trace.DecidedStep):
            decided.setdefault(step.decision.request.rpartition("-")[2], []).append(step)
    found = [
        _approval(digest, at, request, decided.pop(digest, []))
        for digest, (at, request) in asked.items()
    ]
    calls = _calls(steps)
    for digest, left in decided.items():
        turn, _, position = left[0].decision.request.rpartition("-")[0].partition(".")
        found.append(_approval(digest, None, None, left, _question(calls.get((turn, position)))))
    return tuple(sorted(found, key=_when))


def _approval(
    digest: str,
    at: datetime | None,
    request: ApprovalRequest | None,
    decided: Sequence[trace.DecidedStep],
    question: str = "",
) -> Approval:
    first = decided[0] if decided else None
    return Approval(
        id=first.decision.request if first else digest,
        request=request,
        question=question,
        asked=at,
        decision=first.decision if first else None,
        decided=first.at if first else None,
        identity=first.identity if first else "",
        late=tuple(step.decision for step in decided[1:]),
    )


def _when(approval: Approval) -> datetime:
    when = approval.asked or approval.decided
    assert when is not None
    return when


def _requests(steps: Sequence[trace.Step]) -> Iterator[tuple[datetime, ApprovalRequest]]:
    """Each request once, when it was first made: a preview asks the same as the call itself."""
    seen: set[str] = set()
    for step in steps:
        match step:
            case trace.ToolStep(outcome=NeedsApproval(requests=requests)):
                pass
            case trace.LandedStep(report=NeedsApproval(requests=requests)):
                pass
            case trace.ListedStep(listing=NeedsApproval(requests=requests)):
                pass
            case _:
                continue
        for request in requests:
            if request.digest not in seen:
                seen.add(request.digest)
                yield step.at, request


def _calls(steps: Sequence[trace.Step]) -> dict[tuple[str, str], ToolCall]:
    return {
        (str(step.step), str(position)): call
        for step in steps
        if isinstance(step, trace.ModelStep)
        for position, call in enumerate(step.completion.message.calls)
        if isinstance(call, ToolCall)
    }


def _question(call: ToolCall | None) -> str:
    if call is None:
        return ""
    if call.name == ASK_USER:
        return str(call.arguments.get("question", ""))
    return f"The result of {call.name} was lost; try again?"
