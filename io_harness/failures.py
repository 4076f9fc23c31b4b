"""Reads failures out of history, where a codec may have hidden what they say."""

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter


async def readable(converter: DataConverter, failure: Failure) -> Failure:
    """A copy whose messages, and those of its causes, are as they were before they were encoded."""
    shown = Failure()
    shown.CopyFrom(failure)
    each = shown
    while True:
        if each.HasField("encoded_attributes"):
            [said] = await converter.decode([each.encoded_attributes], [dict[str, str]])
            each.message = said.get("message", each.message)
        if not each.HasField("cause"):
            return shown
        each = each.cause
