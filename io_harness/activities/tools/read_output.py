"""Pages an output that was too long to be shown whole."""

from pydantic import Field

from io_harness.activities.outputs import NoSuchOutput
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES

from .base import Args, Tool
from .context import ToolContext
from .errors import UnknownHandle

_MOST = INLINE_OUTPUT_BYTES - 512


class ReadOutputArgs(Args):
    handle: str
    offset: int = 0
    """Byte to begin at; negative counts from the end."""
    limit: int = Field(_MOST, ge=1, le=_MOST)


class ReadOutput(Tool[ReadOutputArgs]):
    name = "read_output"
    description = "Read a page of an output that was cut."
    Args = ReadOutputArgs
    effect = "read"

    async def run(self, args: ReadOutputArgs, ctx: ToolContext) -> Observation:
        try:
            page = ctx.outputs.page(args.handle, args.offset, args.limit)
        except NoSuchOutput:
            raise UnknownHandle(
                f"no output {args.handle!r} is kept here: either it is not one of this run's handles, "
                "or the worker that held it is gone; run the call again"
            ) from None
        more = f"; next offset {page.end}" if page.end < page.total else "; end"
        return Observation(
            text=f"[bytes {page.start}-{page.end} of {page.total}{more}]\n{page.text}"
        )
