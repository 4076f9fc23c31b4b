"""The provider that answers from a recording, and how a recording is made."""

from dataclasses import dataclass
from pathlib import Path

from io_harness.workflows.messages import ModelRef

from .base import (
    CallProgress,
    ModelReply,
    ModelRequest,
    OfferedModel,
    ProviderError,
)
from .recording import (
    SEPARATOR,
    RecordedReply,
    RecordingError,
    compare,
    diverged,
    dump_header,
    dump_turn,
    load,
    since_last_reply,
)


@dataclass(frozen=True)
class Replay:
    """Answers turn by turn. It keeps no state: the request says which turn it is, so that another
    worker can go on where one was killed."""

    source: str
    """The recording: a path, or `package:<package>/<file>`."""
    name: str = "replay"

    async def complete(self, request: ModelRequest, progress: CallProgress) -> ModelReply:
        recording = load(self.source)
        position = request.turn
        if position >= len(recording.turns):
            raise diverged(
                f"it ends after turn {len(recording.turns)}, and turn {position + 1} is asked for"
            )
        turn = recording.turns[position]
        try:
            compare(turn.expect, since_last_reply(request.messages))
        except ProviderError as error:
            raise ProviderError(
                error.failure, f"{error.message} (turn {position + 1} of {self.source})"
            ) from None
        reply = turn.reply
        progress.usage = reply.usage
        progress.cost_usd = reply.cost_usd
        return ModelReply(reply.parts, reply.finish, reply.usage, reply.cost_usd)

    async def models(self) -> tuple[OfferedModel, ...]:
        return ()


def record(path: Path, request: ModelRequest, reply: ModelReply, served_by: ModelRef) -> None:
    """Write a turn to the recording at `path`; the first of a run begins the file anew.

    A turn that is asked for again (its worker died before history had the reply) takes the place of
    the one recorded before.

    Raises:
        RecordingError: the file can't be written, or lacks the turns before this one.
    """
    turn = dump_turn(
        since_last_reply(request.messages),
        RecordedReply(
            parts=reply.parts, finish=reply.finish, usage=reply.usage, cost_usd=reply.cost_usd
        ),
    )
    try:
        if request.turn == 0:
            documents = [dump_header(served_by)]
        else:
            before = path.read_text(encoding="utf-8")
            documents = before.split("\n" + SEPARATOR)[: request.turn + 1]
        whole = (document.rstrip("\n") + "\n" for document in documents)
        path.write_text(SEPARATOR.join([*whole, turn]), encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: the recording can't be written: {error}") from error
