"""Which approvals a run waits for, and what humans decided. Signal, update and query share this book.

A request's id carries the digest of exactly what was shown, so a decision binds to that and nothing
else. The first decision wins; early, duplicate, stale and unknown ones change nothing and are kept in
the log. An early approval takes effect only if the very request it names opens later.
"""

import json
from typing import Literal

from pydantic import Field, JsonValue, field_validator

from .model import Record
from .payloads import INLINE_ARGUMENTS_BYTES, ApprovalRequest

_KEPT_EARLY = 100
_KEPT_LOG = 200


class Decision(Record):
    """What a human says to one request. The payload of signal `decide` and update
    `submit_decision`."""

    request: str
    """Id of the request, as shown."""
    verdict: Literal["approve", "deny", "retry", "skip", "abort"]
    """approve or deny; a request of act `retry` takes retry, skip or abort."""
    by: str = Field(default="", max_length=200)
    """Who decides, as they name themselves."""
    reason: str = Field(default="", max_length=10_000)
    """Carried to the model; for a question, the answer."""
    edit: dict[str, JsonValue] | None = None
    """Other arguments for the tool call. The rewritten call is checked again: a deny still holds."""
    remember: bool = False
    """Also allow what the request's suggestion says, for the rest of the run."""

    @field_validator("edit")
    @classmethod
    def _edit_is_small(cls, edit: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if edit is not None and len(json.dumps(edit)) > INLINE_ARGUMENTS_BYTES:
            raise ValueError(f"must be at most {INLINE_ARGUMENTS_BYTES} bytes as JSON")
        return edit


class PendingApproval(Record):
    """A request that waits for a human."""

    id: str
    step: int
    request: ApprovalRequest
    opened_at: float
    """Workflow time, seconds since the epoch."""
    expires_at: float | None = None
    agent: str = ""
    """Workflow id of the sub-agent that asks; empty for the run's own requests."""


class LoggedDecision(Record):
    """A decision as it arrived, and what became of it."""

    decision: Decision
    at: float
    effect: Literal["applied", "early", "duplicate", "stale", "expired"]


class BookState(Record):
    """The whole book, as it crosses continue-as-new."""

    pending: tuple[PendingApproval, ...] = ()
    decided: dict[str, Decision] = {}
    early: dict[str, Decision] = {}
    closed: tuple[str, ...] = ()
    log: tuple[LoggedDecision, ...] = ()


class UnknownRequest(ValueError):
    """No such request waits; the update that said so is rejected."""


class ApprovalBook:
    def __init__(self, state: BookState | None = None) -> None:
        state = state or BookState()
        self._pending = {p.id: p for p in state.pending}
        self._decided = dict(state.decided)
        self._early = dict(state.early)
        self._closed = list(state.closed)
        self._log = list(state.log)

    def state(self) -> BookState:
        return BookState(
            pending=tuple(self._pending.values()),
            decided=self._decided,
            early=self._early,
            closed=tuple(self._closed),
            log=tuple(self._log),
        )

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """Requests without a decision, oldest first."""
        return tuple(p for p in self._pending.values() if p.id not in self._decided)

    @property
    def log(self) -> tuple[LoggedDecision, ...]:
        return tuple(self._log)

    @staticmethod
    def request_id(step: int, position: int, request: ApprovalRequest) -> str:
        """`<step>.<position>-<digest>`: names one request and, by the digest, what it shows."""
        return f"{step}.{position}-{request.digest[:12]}"

    def open(self, pending: PendingApproval, now: float) -> None:
        """A request begins to wait; an early decision that names it takes effect."""
        if pending.id in self._pending:
            return
        self._pending[pending.id] = pending
        early = self._early.pop(pending.id, None)
        if early is not None and fits(early, pending):
            self._decided[pending.id] = early
            self._record(early, now, "applied")
        elif early is not None:
            self._record(early, now, "stale")

    def take_early(self, request_id: str) -> Decision | None:
        """The early decision that names the request, which is another run's to carry out."""
        return self._early.pop(request_id, None)

    def check(self, decision: Decision) -> None:
        """Reject what can't take effect, before it enters history.

        Raises:
            UnknownRequest: unknown, stale or second decision, or a verdict the request doesn't take.
        """
        pending = self._pending.get(decision.request)
        if decision.request in self._closed or decision.request in self._decided:
            raise UnknownRequest(f"request {decision.request} is already decided")
        if pending is None:
            waiting = ", ".join(p.id for p in self.pending) or "none"
            raise UnknownRequest(
                f"no request {decision.request} waits in this run (waiting: {waiting})"
            )
        if not fits(decision, pending):
            raise UnknownRequest(
                f"request {decision.request} does not take the verdict {decision.verdict!r}"
                + (" with other arguments" if decision.edit is not None else "")
            )

    def decide(self, decision: Decision, now: float) -> None:
        """Take a decision from a signal. Never raises: what can't take effect is only logged."""
        pending = self._pending.get(decision.request)
        if decision.request in self._decided:
            self._record(decision, now, "duplicate")
        elif decision.request in self._closed:
            self._record(decision, now, "stale")
        elif pending is None:
            if len(self._early) < _KEPT_EARLY:
                self._early.setdefault(decision.request, decision)
            self._record(decision, now, "early")
        elif not fits(decision, pending):
            self._record(decision, now, "stale")
        elif pending.expires_at is not None and now >= pending.expires_at:
            self._record(decision, now, "expired")
        else:
            self._decided[decision.request] = decision
            self._record(decision, now, "applied")

    def decided(self, ids: tuple[str, ...]) -> bool:
        """Whether each of `ids` has its decision."""
        return all(i in self._decided for i in ids)

    def close(self, request_id: str) -> Decision | None:
        """Take the request off the book with its decision; None if it has none (it expired)."""
        self._pending.pop(request_id, None)
        self._closed.append(request_id)
        del self._closed[:-_KEPT_LOG]
        return self._decided.pop(request_id, None)

    def _record(self, decision: Decision, now: float, effect: str) -> None:
        self._log.append(
            LoggedDecision.model_validate({"decision": decision, "at": now, "effect": effect})
        )
        if len(self._log) > _KEPT_LOG:  # what took effect is kept before what did not
            idle = (i for i, entry in enumerate(self._log) if entry.effect != "applied")
            del self._log[next(idle, 0)]


def fits(decision: Decision, pending: PendingApproval) -> bool:
    """Whether the request takes the verdict, and other arguments where the decision brings some."""
    if decision.edit is not None and pending.request.act in ("land", "question", "retry"):
        return False
    if pending.request.act == "retry":
        return decision.verdict in ("retry", "skip", "abort")
    return decision.verdict in ("approve", "deny")
