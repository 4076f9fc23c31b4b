"""Waiting for humans. A durable timer bounds the wait; the time is not working time."""

from datetime import timedelta

from temporalio import workflow

from .approvals import ApprovalBook, Decision, PendingApproval
from .ended import RunEnded, stop_if_cancelled
from .lineage import AgentAsks, AgentDecided
from .observe import OBSERVER
from .payloads import ApprovalRequest
from .publish import publish
from .result import Outcome
from .state import RunState


async def ask(
    state: RunState, step: int, asked: tuple[tuple[int, ApprovalRequest], ...]
) -> tuple[Decision | None, ...]:
    """Show the requests (each with its call's position in the turn) together, and wait for a decision
    on each. None stands for one that expired.

    Raises:
        RunEnded: one expired, and the contract says that this ends the run.
        BudgetEnded: the time for the run or its tree was over before.
    """
    stop_if_cancelled()
    approval = state.contract.approval
    now = workflow.time()
    ids = tuple(ApprovalBook.request_id(step, position, request) for position, request in asked)
    pendings = tuple(
        PendingApproval(
            id=request_id,
            step=step,
            request=request,
            opened_at=now,
            expires_at=None if approval.seconds is None else now + approval.seconds,
        )
        for request_id, (_, request) in zip(ids, asked, strict=True)
    )
    for pending in pendings:
        state.book.open(pending, now)
        workflow.logger.info(
            "waiting for a decision",
            extra={"step": step, "request": pending.id, "act": pending.request.act},
        )
        if state.lineage is not None:
            state.tree.tell(AgentAsks(agent=state.tree.me, pending=pending))
    before, state.activity = state.activity, "waiting"
    state.begin_wait()
    publish(state)
    limits = [s for s in (approval.seconds, state.wall_left()) if s is not None]
    expired = not await _decided(state.book, ids, min(limits, default=None))
    # No `finally`: an evicted workflow's coroutines are closed outside of the workflow's event loop,
    # where its API is out of reach.
    state.end_wait()
    state.activity = "waiting" if state.waits else before
    if state.lineage is not None:
        for request_id in ids:
            state.tree.tell(AgentDecided(agent=state.tree.me, request=request_id))
    publish(state)
    decisions = tuple(state.book.close(request_id) for request_id in ids)
    for pending, decision in zip(pendings, decisions, strict=True):
        _tell(pending, decision)
    if expired:
        state.clock()
        if approval.on_expiry == "end_run":
            raise RunEnded(
                Outcome.APPROVAL_EXPIRED,
                f"nobody decided within {approval.seconds} s: {asked[0][1].target}",
            )
    return decisions


def _tell(pending: PendingApproval, decision: Decision | None) -> None:
    verdict = decision.verdict if decision else "expired"
    by = {"by": decision.by} if decision else {}
    workflow.logger.info(
        "decided", extra={"step": pending.step, "request": pending.id, "verdict": verdict, **by}
    )
    observer = OBSERVER.get()
    if observer is not None:
        observer.decided(pending, decision, workflow.time())


async def _decided(book: ApprovalBook, ids: tuple[str, ...], seconds: float | None) -> bool:
    """Wait until each of `ids` is decided; False if the time is over before."""
    timeout = None if seconds is None else timedelta(seconds=seconds)
    try:
        await workflow.wait_condition(lambda: book.decided(ids), timeout=timeout)
    except TimeoutError:
        return False
    return True
