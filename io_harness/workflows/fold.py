"""Folding: the older part of a transcript becomes one summary, made by a model call of its own."""

from .ended import RunEnded
from .messages import AssistantMessage, Message, UserMessage
from .model_call import ContextOverflow, call_model
from .payloads import TranscriptMark
from .result import Outcome
from .state import RunState
from .transcript import Transcript

BYTES_PER_TOKEN = 3
"""Estimate for text and code that no provider has counted yet; on the low side, so that a fold comes
early rather than late."""
FOLD_AT = 0.8
"""Share of the context window that makes a fold due."""
KEEP = 0.3
"""Share of the context window that the unfolded end may fill."""
TRANSCRIPT_BYTES = 1_000_000
"""A larger transcript is folded in any case: packed, it must cross continue-as-new in one payload.
Even text that doesn't compress (base64 of random bytes) then stays at about this size."""


def fold_is_due(state: RunState) -> bool:
    """Whether the transcript nears a limit and a fold would make it shorter."""
    window = state.contract.models[state.model].options.context_tokens
    counted = state.counted_tokens or state.prompt_tokens
    uncounted = state.transcript.bytes_from(state.counted_messages) // BYTES_PER_TOKEN
    near = counted + uncounted > window * FOLD_AT or state.transcript.bytes > TRANSCRIPT_BYTES
    return near and _cut(state) is not None


async def fold(state: RunState) -> None:
    """Replace all but the goal and the end of the transcript by a summary.

    Raises:
        RunEnded: nothing is left to fold, or the summary itself doesn't fit.
    """
    messages = state.transcript.messages
    cut = _cut(state)
    if cut is None:
        raise RunEnded(
            Outcome.ESCALATED,
            "the context window is full and the transcript can't be folded any further",
            code="ContextOverflow",
        )
    try:
        summary = await call_model(state, "fold", _mark(messages[:cut]))
    except ContextOverflow:
        raise RunEnded(
            Outcome.ESCALATED,
            "the context window is full, and the transcript is too long to be summarised in it",
            code="ContextOverflow",
        ) from None
    folded = UserMessage(
        origin="fold",
        text="Summary of the work so far (older messages were folded into it):\n\n"
        + summary.message.text
        + (f"\n\nYour plan:\n{state.plan.markdown()}" if state.plan.items else ""),
    )
    state.transcript = Transcript((messages[0], folded, *messages[cut:]))
    state.counted_tokens = 0
    state.counted_messages = 0


def _cut(state: RunState) -> int | None:
    window = state.contract.models[state.model].options.context_tokens
    keep_bytes = min(int(window * KEEP) * BYTES_PER_TOKEN, TRANSCRIPT_BYTES // 2)
    return cut_at(state.transcript.messages, keep_bytes)


def cut_at(messages: tuple[Message, ...], keep_bytes: int) -> int | None:
    """Index of the first message that stays as it is: an assistant's, so that no call is split from
    its result. The end from there on holds at most `keep_bytes`, or is the last turn. None if no
    more than the goal and one message come before it."""
    cut, size = None, 0
    for index in range(len(messages) - 1, 1, -1):
        size += len(messages[index].model_dump_json())
        if isinstance(messages[index], AssistantMessage):
            if cut is not None and size > keep_bytes:
                break
            cut = index
    return cut if cut is not None and cut > 2 else None


def _mark(messages: tuple[Message, ...]) -> TranscriptMark:
    return Transcript(messages).mark
