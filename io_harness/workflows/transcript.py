"""The transcript of a run, with a digest chain by which workers cache what they have read of it."""

import hashlib
from collections.abc import Iterable

from pydantic import TypeAdapter

from .messages import Message
from .model import Record
from .packing import packed, unpacked
from .payloads import TranscriptMark

PAGE_BYTES = 1_000_000
"""Ceiling of one page, well below the 2 MB at which the server refuses a query's result."""


_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


class TranscriptPage(Record):
    start: int
    """Index of the first message of this page."""
    messages: tuple[Message, ...]
    before: str = ""
    """Digest of all messages before `start`."""
    digests: tuple[str, ...] = ()
    """Of the transcript up to and with each message, as the workflow marks it."""
    total: int
    """Messages in the whole transcript."""


def extended_digest(previous: str, message: Message) -> str:
    """Digest of a transcript from the digest of all but its last message (empty string for none).

    What is at its default is left out: a field that a later release adds to messages changes no
    digest of the ones before, which calls that are under way may carry.
    """
    content = message.model_dump_json(exclude_defaults=True)
    return hashlib.sha256(f"{previous}\n{message.role}\n{content}".encode()).hexdigest()


class Transcript:
    """Messages in order. Grows at the end; a fold replaces all but the end."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._digests: list[str] = []
        self._sizes: list[int] = []
        self._packed: str | None = None
        for message in messages:
            self.append(message)

    @staticmethod
    def unpack(text: str) -> "Transcript":
        """The transcript that `pack` packed."""
        return Transcript(_MESSAGES.validate_json(unpacked(text)))

    def pack(self) -> str:
        """All messages as JSON, made small: history takes it twice per continuation. Done once, since
        it takes a tenth of a second in which the workflow does nothing else."""
        if self._packed is None:
            self._packed = packed(_MESSAGES.dump_json(self.messages))
        return self._packed

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def bytes(self) -> int:
        """Size of all messages as JSON."""
        return sum(self._sizes)

    def bytes_from(self, start: int) -> int:
        """Size of the messages from index `start` on, as JSON."""
        return sum(self._sizes[start:])

    def append(self, message: Message) -> None:
        self._digests.append(extended_digest(self._digests[-1] if self._digests else "", message))
        self._sizes.append(len(message.model_dump_json().encode()))
        self._messages.append(message)
        self._packed = None

    @property
    def mark(self) -> TranscriptMark:
        """Names the whole transcript as it is now."""
        return TranscriptMark(
            upto=len(self._messages), digest=self._digests[-1] if self._digests else ""
        )

    def page(self, start: int) -> TranscriptPage:
        """As many messages from index `start` on as fit a query's result, one at least."""
        end, size = max(start, 0), 0
        while end < len(self._messages) and (end == start or size + self._sizes[end] <= PAGE_BYTES):
            size += self._sizes[end]
            end += 1
        return TranscriptPage(
            start=start,
            messages=tuple(self._messages[start:end]),
            before=self._digests[start - 1] if 0 < start <= len(self._digests) else "",
            digests=tuple(self._digests[start:end]),
            total=len(self._messages),
        )
