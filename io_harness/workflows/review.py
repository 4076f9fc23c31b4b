"""Criteria that another model judges: asked when all else has passed."""

from .model_call import ContextOverflow, call_reviewer
from .result import CheckReport, VerificationReport
from .review_prompt import verdict_of
from .state import RunState


async def reviewed(state: RunState, report: VerificationReport) -> VerificationReport:
    """A passed report with what each review says, up to the first that doesn't pass.

    Raises:
        BudgetEnded: a call could pass the budget; it was not made.
        RunEnded: a reviewer gave no usable reply.
    """
    checks = list(report.checks)
    verdict = report.verdict
    for index in range(len(state.contract.reviews)):
        checks.append(await _review(state, index, report.change))
        verdict = checks[-1].verdict
        if verdict != "passed":
            break
    return report.model_copy(update={"verdict": verdict, "checks": tuple(checks), "change": ""})


async def _review(state: RunState, index: int, change: str) -> CheckReport:
    begun = state.ledger.spend.working_seconds
    model = state.contract.reviews[index].model
    name = f"{model.provider}/{model.name}"
    try:
        completion = await call_reviewer(state, index, change)
    except ContextOverflow:
        return _errored(f"the change doesn't fit the context window of {name}")
    given = verdict_of(completion.message)
    if isinstance(given, str):
        return _errored(f"{name} {given}")
    state.clock()
    return CheckReport(
        kind="review",
        verdict="passed" if given.passes else "failed",
        summary=f"{name} {'finds nothing against it' if given.passes else 'finds fault with it'}",
        detail=given.findings,
        seconds=round(state.ledger.spend.working_seconds - begun, 3),
    )


def _errored(summary: str) -> CheckReport:
    return CheckReport(kind="review", verdict="errored", summary=summary)
