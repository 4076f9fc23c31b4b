"""What the model is asked when a transcript is folded into a summary."""

from io_harness.workflows.messages import Message, ToolMessage, UserMessage

CLIPPED_CHARS = 2_000
"""A longer tool result is shortened in the request: a summary of it needs no more, and the request
must fit the window that the transcript itself no longer fits."""

_INSTRUCTION = """\
The transcript above is about to be replaced by a summary that you write now, because the context \
window is nearly full. You will go on with the task from your summary and the most recent turns alone.

Write down, as briefly as completeness allows: what has been done (files changed, and how), what was \
found out (facts, locations, exact names, commands that work, errors seen), what failed and why, what \
the human said, what is still to do, and which questions are open. Don't repeat the task itself. \
Don't call a tool."""


def fold_request(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The transcript to be folded, long tool results shortened, and the instruction."""
    shortened = (_shortened(message) for message in messages)
    return (*shortened, UserMessage(origin="fold", text=_INSTRUCTION))


def _shortened(message: Message) -> Message:
    if not isinstance(message, ToolMessage) or len(message.observation.text) <= CLIPPED_CHARS:
        return message
    text = message.observation.text
    half = CLIPPED_CHARS // 2
    clipped = f"{text[:half]}\n[… {len(text) - CLIPPED_CHARS} characters …]\n{text[-half:]}"
    observation = message.observation.model_copy(update={"text": clipped, "images": ()})
    return message.model_copy(update={"observation": observation})
