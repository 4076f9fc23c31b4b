"""One sub-agent, as its parent knows it."""

import json
from typing import Literal

from .ledger import Share
from .model import Record
from .result import Outcome, RunResult, Spend

KEPT_BYTES = 256 * 1024
"""Of what all sub-agents of a run wrote themselves: it crosses continue-as-new in one payload."""
_LEAST_KEPT, _MOST_KEPT = 500, 8_000


class Report(Record):
    """What is kept of a sub-agent's result. The whole is in its own workflow."""

    outcome: Outcome
    reason: str
    words: str
    """What the agent itself wrote, its structured answer included, cut."""
    checks: tuple[str, ...] = ()
    """Of a criterion that did not pass, a line for each check."""
    base: str | None
    head: str | None
    ref: str | None
    spend: Spend
    """With that of its own sub-agents."""
    agents: int
    """Sub-agents that it started, and theirs."""
    unread: int = 0
    """Messages that it did not read any more."""

    @staticmethod
    def of(result: RunResult, among: int) -> "Report":
        """
        Args:
            among: How many sub-agents share what may be kept.
        """
        words = result.summary
        if result.answer is not None:
            words += f"\nanswer: {json.dumps(result.answer, ensure_ascii=False)}"
        judged = result.verification
        checks = judged.checks if judged is not None and judged.verdict != "passed" else ()
        return Report(
            outcome=result.outcome,
            reason=result.reason[:500],
            words=cut(words, min(max(KEPT_BYTES // among, _LEAST_KEPT), _MOST_KEPT)),
            checks=tuple(f"{c.kind} {c.verdict}: {c.summary[:300]}" for c in checks[:5]),
            base=result.base,
            head=result.head,
            ref=result.ref,
            spend=result.spend + result.descendants,
            agents=result.agents,
            unread=result.unread,
        )


class Child(Record):
    id: str
    """Its workflow id."""
    goal: str
    share: Share
    agents: int
    """How many sub-agents it may start itself."""
    state: Literal["queued", "running", "ended"] = "queued"
    report: Report | None = None
    failure: str = ""
    """Why it ended without a report."""
    got_more: bool = False
    """It asked for more budget, which it may once."""
    merged: bool = False
    collected: bool = False

    @property
    def ended(self) -> bool:
        return self.state == "ended"

    @property
    def failed(self) -> bool:
        """Neither verified nor, where it has no criterion, finished."""
        good = (Outcome.SUCCESS, Outcome.FINISHED)
        return self.ended and (self.report is None or self.report.outcome not in good)

    @property
    def verified(self) -> bool:
        return self.report is not None and self.report.outcome is Outcome.SUCCESS


def cut(text: str, most: int) -> str:
    """The text's beginning, and how much was left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"
