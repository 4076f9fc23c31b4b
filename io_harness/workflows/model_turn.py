"""The next message of the model, folding the transcript where it no longer fits."""

from .ended import RunEnded
from .fold import fold_overflowed, make_room
from .model_call import ContextOverflow, call_model
from .payloads import Completion
from .result import Outcome
from .state import RunState


async def next_message(state: RunState) -> Completion:
    """Ask for the next message and append it to the transcript.

    Raises:
        BudgetEnded: the call could pass the budget; it was not made.
        RunEnded: no model of the chain gave a usable reply, or the transcript can't be made to fit.
    """
    await make_room(state)
    try:
        completion = await call_model(state, "turn", state.transcript.mark)
    except ContextOverflow:
        await fold_overflowed(state)
        try:
            completion = await call_model(state, "turn", state.transcript.mark)
        except ContextOverflow:
            raise RunEnded(
                Outcome.ESCALATED,
                "the request doesn't fit the model's context, even folded",
                code="ContextOverflow",
            ) from None
    state.transcript.append(completion.message)
    state.counted_tokens = completion.usage.total
    state.counted_messages = len(state.transcript)
    return completion
