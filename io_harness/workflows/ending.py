"""From a claim to a verified and landed result, and the end of every run."""

from itertools import takewhile
from typing import assert_never

from temporalio import workflow
from temporalio.exceptions import ActivityError

from . import calls
from .ask import ask
from .contract import AllOf, AnyOf, Apply, Check, CommandCheck, NoCheck, TestsCheck
from .ended import RunEnded, failure_code, failure_text, reraise_cancel
from .messages import Observation, ToolCall, ToolMessage, UserMessage
from .own_tools import FINISH, FinishArgs
from .payloads import Grant, LandInput, NeedsApproval, ReleaseInput, VerifyInput
from .publish import publish
from .result import (
    CheckReport,
    LandConflict,
    Landed,
    LandReport,
    NothingToLand,
    Outcome,
    RunResult,
    VerificationReport,
)
from .review import reviewed
from .state import RunState

_UNREAD = Observation(
    text="Not finished: you have messages, which follow. Call finish again when you have read them.",
    is_error=True,
)


async def judge(state: RunState, claim: FinishArgs, call: ToolCall | None) -> None:
    """Verify a claim. A failed criterion goes back to the model as the result of its `finish` call; so
    does the word that other agents wrote meanwhile.

    Raises:
        RunEnded: the work is verified and landed, or can't be.
    """
    if state.tree.inbox:
        _reply(state, call, _UNREAD)
        return
    state.summary, state.answer = claim.summary, claim.answer
    if isinstance(state.contract.verification, NoCheck) and state.contract.output_schema is None:
        _reply(state, call, Observation(text="Accepted; there is no criterion."))
        await _land(state)
        raise RunEnded(Outcome.FINISHED, "the agent finished; the contract has no criterion")
    report = await _verify(state, claim)
    again = state.verification is not None and _did_not_run(state.verification)
    state.verification = report
    unread = report.verdict == "passed" and bool(state.tree.inbox)
    _reply(state, call, _UNREAD if unread else _observation(report))
    match report.verdict:
        case "passed" if unread:
            return
        case "passed":
            await _land(state)
            raise RunEnded(Outcome.SUCCESS, _success(state))
        case "errored" | "failed" if again and _did_not_run(report):
            raise RunEnded(
                Outcome.ESCALATED,
                f"the criterion could not run, twice: {_unpassed(report).summary}",
                code="CriterionErrored",
            )
        case "errored" | "failed":
            return
        case _:
            assert_never(report.verdict)


def _success(state: RunState) -> str:
    if state.lineage is not None:
        return "verified"
    if isinstance(state.landing, Landed) and state.landing.mixed:
        return "verified and landed beside other changes, with which it was not verified"
    return "verified and landed"


def _did_not_run(report: VerificationReport) -> bool:
    """Whether the criterion, or the program that it names, could not be run. Once, the agent may be the
    cause and mend it; twice in a row it would burn the budget."""
    missing = any(c.verdict == "failed" and c.exit_code in (126, 127) for c in report.checks)
    return report.verdict == "errored" or missing


def _unpassed(report: VerificationReport) -> CheckReport:
    return next(check for check in report.checks if check.verdict != "passed")


async def _verify(state: RunState, claim: FinishArgs) -> VerificationReport:
    state.activity = "verifying"
    publish(state)
    seconds = state.contract.workspace.setup_seconds + check_seconds(state.contract.verification)
    arg = VerifyInput(
        run=state.scope,
        base=state.prepared.base,
        head=state.head,
        answer=claim.answer,
        remembered=tuple(state.remembered),
    )
    options = calls.Options(
        attempt_seconds=seconds + 120, total_seconds=state.clock(), task_queue=state.tools_queue
    )
    try:
        report = await calls.verify(arg, options, f"verify: {_criterion(state)}")
    except ActivityError as error:
        reraise_cancel(error)
        state.clock()
        raise RunEnded(
            Outcome.ESCALATED,
            f"verification could not run: {failure_text(error)}",
            code=failure_code(error),
        ) from error
    state.count(report.egress)
    if report.verdict == "passed" and state.contract.reviews:
        report = await reviewed(state, report)
    state.activity = "working"
    return report


def check_seconds(check: Check | NoCheck) -> int:
    """Longest time that a criterion may take."""
    match check:
        case CommandCheck() | TestsCheck():
            return check.seconds
        case AllOf() | AnyOf():
            return sum(check_seconds(c) for c in check.checks)
        case _:
            return 10


def _criterion(state: RunState) -> str:
    check = state.contract.verification
    if isinstance(check, CommandCheck | TestsCheck):
        return check.run if isinstance(check.run, str) else " ".join(check.run)
    return check.kind


def _observation(report: VerificationReport) -> Observation:
    if report.verdict == "passed":
        return Observation(text="Verification passed.")
    head = {
        "failed": "Verification failed. You are not done; go on.",
        "errored": "The criterion could not run. If your change is the cause, mend it.",
    }[report.verdict]
    details = (f"[{c.kind}] {c.verdict}: {c.summary}\n{c.detail}".rstrip() for c in report.checks)
    return Observation(text="\n\n".join([head, *details]), is_error=True)


def _reply(state: RunState, call: ToolCall | None, observation: Observation) -> None:
    if call is None:
        state.transcript.append(UserMessage(origin="verification", text=observation.text))
    else:
        state.transcript.append(ToolMessage(call_id=call.id, name=FINISH, observation=observation))


async def _land(state: RunState) -> None:
    """Deliver the work. Unverified work is never written into the source by itself.

    Raises:
        RunEnded: it conflicts with the source, or a human refused it.
    """
    state.activity = "landing"
    publish(state)
    if state.lineage is not None:
        return  # the parent merges it
    landing = state.contract.landing
    verified = state.verification is not None and state.verification.verdict == "passed"
    if not verified and isinstance(landing, Apply) and landing.approve == "auto":
        return
    grants: tuple[Grant, ...] = ()
    while True:
        outcome = await _land_once(state, grants)
        match outcome:
            case NeedsApproval(requests=(request, *_)):
                (decision,) = await ask(state, state.step, ((0, request),))
                if decision is None or decision.verdict != "approve":
                    words = f": {decision.reason}" if decision and decision.reason else ""
                    raise RunEnded(
                        Outcome.DENIED, f"the work is verified, but landing it was denied{words}"
                    )
                grants = (Grant(digest=request.digest),)
            case LandConflict():
                state.landing = outcome
                raise RunEnded(
                    Outcome.ESCALATED,
                    f"the work is verified, but does not land: {outcome.reason}",
                    code="LandConflict",
                )
            case Landed() | NothingToLand():
                state.landing = outcome
                return


async def _land_once(state: RunState, grants: tuple[Grant, ...]) -> LandReport | NeedsApproval:
    checks = state.verification.checks if state.verification else ()
    arg = LandInput(
        run=state.scope,
        base=state.prepared.base,
        head=state.head,
        title=next(iter(state.contract.goal.splitlines()), "")[:200],
        verification="; ".join(f"{c.kind} {c.verdict}: {c.summary}" for c in checks)[:2000],
        grants=grants,
    )
    try:
        return await calls.land(arg, state.tools_queue, f"land ({state.contract.landing.mode})")
    except ActivityError as error:
        reraise_cancel(error)
        raise RunEnded(
            Outcome.ESCALATED,
            f"the work is verified, but could not be landed: {failure_text(error)}",
            code=failure_code(error),
        ) from error


def _unread(state: RunState) -> int:
    """How many messages of other agents no model call has seen."""
    after_reply = takewhile(lambda m: m.role != "assistant", reversed(state.transcript.messages))
    shown = sum(m.role == "user" and m.origin == "agent" for m in after_reply)
    return shown + len(state.tree.inbox)


async def conclude(state: RunState, ended: RunEnded) -> RunResult:
    """Release what the run holds and make its result. Also after cancellation."""
    arg = ReleaseInput(
        run=state.scope,
        base=state.prepared.base,
        head=state.head,
        outcome=ended.outcome,
        seconds=workflow.time() - state.started_at,
        waited_seconds=state.waited_seconds,
        usd=state.ledger.spend.usd,
    )
    ref, reason = None, ended.reason
    try:
        released = await calls.release(arg, state.tools_queue, f"release ({ended.outcome})")
        ref = released.ref
        state.count(released.egress)
    except ActivityError as error:
        # The result stands; what was not released is collected later as garbage.
        reason += f" (the run's copy could not be released: {failure_text(error)})"
    state.activity = ended.outcome.value
    publish(state)
    workflow.logger.info(
        "run ended",
        extra={
            "outcome": ended.outcome.value,
            "code": ended.code,
            "step": state.step,
            "usd": float(state.ledger.spend.usd),
        },
    )
    return RunResult(
        outcome=ended.outcome,
        reason=reason,
        code=ended.code,
        summary=state.summary,
        answer=state.answer,
        base=state.prepared.base,
        head=state.head,
        ref=ref,
        verification=state.verification,
        landing=state.landing,
        spend=state.ledger.spend,
        descendants=state.ledger.descendants,
        agents=state.children.started,
        unread=_unread(state),
        models=tuple(state.served),
        isolation=state.prepared.isolation,
        egress=state.egress,
        remembered=tuple(state.remembered),
        labels=state.contract.labels,
    )
