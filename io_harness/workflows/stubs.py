"""Stubs: what is left in the transcript of an old, long tool result."""

from .messages import Message, ToolMessage

STUBBED_OVER_BYTES = 2_000
"""A longer result is kept on the worker, so that a stub in its place can say how to read it."""


def stub(message: Message) -> Message:
    """A long tool result shortened to where the whole is kept, and pictures to their number; any other
    message, and a result that is a stub already, as it is."""
    if not isinstance(message, ToolMessage):
        return message
    seen = message.observation
    long = seen.spill is not None and len(seen.text.encode()) > STUBBED_OVER_BYTES
    if not long and not seen.images:
        return message
    text = seen.text
    if long:
        text = (
            f"[An older result of {len(seen.text.encode()) + seen.omitted_bytes:,} bytes, taken out "
            f'to make room. read_output("{seen.spill}") shows it.]'
        )
    if seen.images:
        number = f"{len(seen.images)} image{'s' * (len(seen.images) > 1)}"
        text += f"\n[{number} no longer shown; call the tool again to see.]"
    shorter = seen.model_copy(update={"text": text, "images": ()})
    return message.model_copy(update={"observation": shorter})
