"""One committed model call: budget first, then the chain of models, then the books."""

from typing import Literal

from temporalio.exceptions import ActivityError

from . import calls
from .ended import RunEnded, failure_code, failure_detail, failure_text, reraise_cancel, timed_out
from .ledger import Share, input_bound
from .payloads import CompleteInput, Completion, ModelFailure, TranscriptMark, Used
from .result import Outcome
from .state import RunState


class ContextOverflow(Exception):
    """The request doesn't fit the model's context window."""


async def call_model(
    state: RunState, purpose: Literal["turn", "fold"], mark: TranscriptMark
) -> Completion:
    """The reply of the first model of the chain that gives a usable one. It is booked.

    Raises:
        ContextOverflow: the transcript must be folded first.
        BudgetEnded: the call could pass the budget; it was not made.
        RunEnded: no model of the chain gave a usable reply.
    """
    while True:
        try:
            completion = await _attempt(state, purpose, mark)
        except ActivityError as error:
            reraise_cancel(error)
            failed = _failed(state, error)
            if failed is None:
                continue
        else:
            state.count(completion.egress)
            used = completion.usage + completion.retried
            state.ledger = state.ledger.settle(used, completion.cost_usd)
            if completion.finish == "context_overflow":
                raise ContextOverflow
            if completion.finish not in ("refusal", "content_filter"):
                if completion.message.served_by not in state.served:
                    state.served.append(completion.message.served_by)
                return completion
            failed = RunEnded(
                Outcome.ESCALATED,
                f"{_label(state)} declined ({completion.finish}): {completion.message.text[:500]}",
                code="ModelDeclined",
            )
        if state.model + 1 >= len(state.contract.models):
            raise failed
        state.model += 1


def _failed(state: RunState, error: ActivityError) -> RunEnded | None:
    """Book what the failed call used, and say how the run ends if no other model helps. None: the same
    model may be asked again, as far as the budget allows now.

    Raises:
        ContextOverflow, BudgetEnded, RunEnded: no other model can help.
    """
    code = failure_code(error)
    used, failure = failure_detail(error, Used), failure_detail(error, ModelFailure)
    if used is not None:
        state.ledger = state.ledger.settle(used.usage, used.cost_usd, steps=0)
    if code == "ContextTooLong":
        raise ContextOverflow from error
    if code == "RetriesOverBudget":
        return None
    state.clock()  # raises if the time budget is what ended the call
    if timed_out(error) and failure is not None:
        raise RunEnded(
            Outcome.TIME_BUDGET_EXCEEDED,
            f"{_label(state)}: {failure_text(error)}; the wait for another try would pass the time "
            "budget",
            code=code,
        )
    failed = RunEnded(Outcome.ESCALATED, f"{_label(state)}: {failure_text(error)}", code=code)
    if failure is not None and not failure.fallback_may_help:
        raise failed from error
    return failed


async def _attempt(
    state: RunState, purpose: Literal["turn", "fold"], mark: TranscriptMark
) -> Completion:
    seconds_left = state.clock()
    model = state.contract.models[state.model]
    uncounted = state.transcript.bytes_from(state.counted_messages)
    counted = state.counted_tokens or state.prompt_tokens
    bound, price = input_bound(counted, uncounted), state.admitted.prices[state.model]
    ceiling = state.ledger.model_call(input_tokens=bound, model=model, price=price)
    spare = state.ledger.spare(input_tokens=bound, output_tokens=ceiling, price=price)
    held = Share(tokens=0)
    if state.children.running:
        spare = spare.half()  # the other half is for them, if they ask
        state.ledger, held = state.ledger.hold_all_but(spare)
    arg = CompleteInput(
        run=state.scope,
        step=state.step + 1,
        purpose=purpose,
        transcript=mark,
        model=state.model,
        max_output_tokens=ceiling,
        spare=spare,
    )
    options = calls.Options(attempt_seconds=model.options.seconds + 30, total_seconds=seconds_left)
    what = "fold the transcript" if purpose == "fold" else f"step {state.step + 1}"
    try:
        return await calls.complete(arg, options, f"{what}: {model.provider}/{model.name}")
    finally:
        state.ledger = state.ledger.freed(held)


def _label(state: RunState) -> str:
    model = state.contract.models[state.model]
    return f"{model.provider}/{model.name}"
