"""One committed model call: budget first, then the chain of models, then the books."""

from dataclasses import dataclass
from typing import Literal, assert_never

from temporalio.exceptions import ActivityError

from . import calls
from .ended import RunEnded, failure_code, failure_detail, failure_text, reraise_cancel, timed_out
from .ledger import Share, input_bound
from .payloads import CompleteInput, Completion, ModelFailure, Purpose, TranscriptMark, Used
from .result import Outcome
from .review_prompt import ASKED_BYTES, review_prompt
from .state import RunState


class ContextOverflow(Exception):
    """The request doesn't fit the model's context window."""


@dataclass(frozen=True)
class _Question:
    """What is asked, and of which of the contract's models."""

    purpose: Purpose
    mark: TranscriptMark
    model: int
    input_tokens: int
    """Upper bound."""
    change: str = ""

    def to(self, state: RunState) -> str:
        model = state.contract.all_models[self.model]
        return f"{model.provider}/{model.name}"


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
        uncounted = state.transcript.bytes_from(state.counted_messages)
        bound = input_bound(state.counted_tokens or state.prompt_tokens, uncounted)
        reply = await _reply(state, _Question(purpose, mark, state.model, bound))
        if isinstance(reply, Completion):
            return reply
        if state.model + 1 >= len(state.contract.models):
            raise reply
        state.model += 1


async def call_reviewer(state: RunState, review: int, change: str) -> Completion:
    """The reply of the model of one of the contract's reviews. It is booked.

    Raises:
        ContextOverflow, BudgetEnded, RunEnded: as `call_model`.
    """
    bound = len(review_prompt(state.contract, review, change).encode()) + ASKED_BYTES
    model = len(state.contract.models) + review
    question = _Question("review", state.transcript.mark, model, bound, change)
    steps = state.step
    try:
        reply = await _reply(state, question)
    finally:
        state.reviews += state.step - steps
    if isinstance(reply, RunEnded):
        raise reply
    return reply


async def _reply(state: RunState, question: _Question) -> Completion | RunEnded:
    """A usable reply, or how the run ends if no other model gives one. What was used is booked."""
    while True:
        try:
            completion = await _attempt(state, question)
        except ActivityError as error:
            reraise_cancel(error)
            failed = _failed(state, question, error)
            if failed is None:
                continue
            return failed
        state.count(completion.egress)
        used = completion.usage + completion.retried
        state.ledger = state.ledger.settle(used, completion.cost_usd)
        if completion.finish == "context_overflow":
            raise ContextOverflow
        if completion.finish in ("refusal", "content_filter"):
            declined = f"declined ({completion.finish}): {completion.message.text[:500]}"
            return RunEnded(
                Outcome.ESCALATED, f"{question.to(state)} {declined}", code="ModelDeclined"
            )
        if completion.message.served_by not in state.served:
            state.served.append(completion.message.served_by)
        return completion


def _failed(state: RunState, question: _Question, error: ActivityError) -> RunEnded | None:
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
            f"{question.to(state)}: {failure_text(error)}; the wait for another try would pass the "
            "time budget",
            code=code,
        )
    failed = RunEnded(Outcome.ESCALATED, f"{question.to(state)}: {failure_text(error)}", code=code)
    if failure is not None and not failure.fallback_may_help:
        raise failed from error
    return failed


async def _attempt(state: RunState, question: _Question) -> Completion:
    seconds_left = state.clock()
    model = state.contract.all_models[question.model]
    price = state.admitted.prices[question.model]
    bound = question.input_tokens
    ceiling = state.ledger.model_call(input_tokens=bound, model=model, price=price)
    spare = state.ledger.spare(input_tokens=bound, output_tokens=ceiling, price=price)
    held = Share(tokens=0)
    if state.children.running:
        spare = spare.half()  # the other half is for them, if they ask
        state.ledger, held = state.ledger.hold_all_but(spare)
    arg = CompleteInput(
        run=state.scope,
        step=state.step + 1,
        purpose=question.purpose,
        transcript=question.mark,
        model=question.model,
        max_output_tokens=ceiling,
        spare=spare,
        reviews=state.reviews,
        change=question.change,
    )
    options = calls.Options(attempt_seconds=model.options.seconds + 30, total_seconds=seconds_left)
    try:
        return await calls.complete(arg, options, f"{_what(state, question)}: {question.to(state)}")
    finally:
        state.ledger = state.ledger.freed(held)


def _what(state: RunState, question: _Question) -> str:
    match question.purpose:
        case "turn":
            return f"step {state.step + 1}"
        case "fold":
            return "fold the transcript"
        case "review":
            return "review the change"
        case _:
            assert_never(question.purpose)
