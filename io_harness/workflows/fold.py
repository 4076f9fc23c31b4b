"""Room in the context window: old tool results become stubs; where that is not enough, the older part
of the transcript becomes one summary, made by a model call of its own. Both happen only when the window
is nearly full, so that between them each request begins with the bytes of the one before, which is what
providers cache."""

from .ended import RunEnded
from .messages import AssistantMessage, Message, UserMessage
from .model_call import ContextOverflow, call_model
from .payloads import TranscriptMark
from .result import Outcome
from .state import RunState
from .stubs import stub
from .transcript import Transcript

BYTES_PER_TOKEN = 3
"""Estimate for text and code that no provider has counted yet; on the low side, so that a fold comes
early rather than late."""
FOLD_AT = 0.8
"""Share of the context window that makes a fold due."""
STUBS_FREE = 0.2
"""Stubs do if they free this share of the context window; with less, the next would be due too soon."""
KEEP = 0.3
"""Share of the context window that the unfolded end may fill; of the transcript, where that was too
long for a provider."""
CARRIED_BYTES = 96 * 1024
"""Of a packed transcript that crosses continue-as-new as it is. History takes it twice: a longer one
would come to more than the turns themselves. Text and code pack to a fifth, so that only what hardly
compresses (base64, hashes) is shortened for this."""
TRANSCRIPT_BYTES = 1_000_000
"""A larger transcript is folded in any case: packed, it must cross continue-as-new in one payload.
Even text that doesn't compress (base64 of random bytes) then stays at about this size."""


async def make_room(state: RunState) -> None:
    """Shorten the transcript where it nears a limit and can be made shorter.

    Raises:
        RunEnded: the summary doesn't fit, or it saves nothing.
    """
    cut = cut_at(state.transcript.messages, _keep_bytes(state))
    if cut is None or not _is_nearly_full(state):
        return
    shorter = _stubbed(state.transcript, cut)
    if (state.transcript.bytes - shorter.bytes) // BYTES_PER_TOKEN >= _window(state) * STUBS_FREE:
        _replace(state, shorter)
    else:
        await _fold(state, cut)


def lighten(state: RunState) -> None:
    """Shorten what crosses continue-as-new, where it is large even packed."""
    shorter = lightened(state.transcript)
    if shorter is not state.transcript:
        _replace(state, shorter)


def lightened(transcript: Transcript) -> Transcript:
    """The same if it packs to `CARRIED_BYTES`; else with stubs for so many of the old tool results
    that it does, as far as that helps."""
    shorter, keep_bytes = transcript, transcript.bytes
    while (packed := len(shorter.pack())) > CARRIED_BYTES:
        keep_bytes = keep_bytes * CARRIED_BYTES // packed
        cut = cut_at(transcript.messages, keep_bytes)
        if cut is None or (next_ := _stubbed(transcript, cut)).bytes >= shorter.bytes:
            return shorter
        shorter = next_
    return shorter


async def fold_overflowed(state: RunState) -> None:
    """Fold a transcript that the provider itself calls too long. Its window is then smaller than the
    contract says, so what stays is a share of the transcript.

    Raises:
        RunEnded: nothing is left to fold, the summary doesn't fit, or it saves nothing.
    """
    keep_bytes = min(_keep_bytes(state), int(state.transcript.bytes * KEEP))
    cut = cut_at(state.transcript.messages, keep_bytes)
    if cut is None:
        raise _full("the transcript can't be folded any further")
    await _fold(state, cut)


def _is_nearly_full(state: RunState) -> bool:
    counted = state.counted_tokens or state.prompt_tokens
    uncounted = state.transcript.bytes_from(state.counted_messages) // BYTES_PER_TOKEN
    full = counted + uncounted > _window(state) * FOLD_AT
    return full or state.transcript.bytes > TRANSCRIPT_BYTES


def _window(state: RunState) -> int:
    return state.contract.models[state.model].options.context_tokens


def _stubbed(transcript: Transcript, cut: int) -> Transcript:
    messages = transcript.messages
    return Transcript((*map(stub, messages[:cut]), *messages[cut:]))


def _replace(state: RunState, transcript: Transcript) -> None:
    state.transcript = transcript
    state.counted_tokens = 0
    state.counted_messages = 0


async def _fold(state: RunState, cut: int) -> None:
    """Replace all between the goal and the message at `cut` by a summary."""
    messages = state.transcript.messages
    try:
        summary = await call_model(state, "fold", _mark(messages[:cut]))
    except ContextOverflow:
        raise _full("the transcript is too long to be summarised in it") from None
    if not summary.message.text.strip():
        raise _full("the model's summary of the transcript is empty")
    folded = UserMessage(
        origin="fold",
        text="Summary of the work so far (older messages were folded into it):\n\n"
        + summary.message.text
        + (f"\n\nYour plan:\n{state.plan.markdown()}" if state.plan.items else ""),
    )
    shorter = Transcript((messages[0], folded, *messages[cut:]))
    if shorter.bytes >= state.transcript.bytes:
        raise _full("the model's summary of the transcript is longer than what it sums up")
    _replace(state, shorter)


def _full(why: str) -> RunEnded:
    reason = f"the context window is full, and {why}"
    return RunEnded(Outcome.ESCALATED, reason, code="ContextOverflow")


def _keep_bytes(state: RunState) -> int:
    return min(int(_window(state) * KEEP) * BYTES_PER_TOKEN, TRANSCRIPT_BYTES // 2)


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
