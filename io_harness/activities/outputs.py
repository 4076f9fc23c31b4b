"""Outputs of tool calls: a capped text goes to the model, the whole is kept in a file that
`read_output` pages."""

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES
from io_harness.workflows.stubs import STUBBED_OVER_BYTES

KEPT_BYTES = 256 * 1024 * 1024
"""Ceiling of one kept output; what comes after is counted but not kept."""
_HEAD_SHARE = 2 / 3
_NOTE_BYTES = 512  # room for the sentence between head and tail
_HANDLE = re.compile(r"out-[0-9a-f]{16}\Z")


class NoSuchOutput(LookupError):
    """No output with that handle is kept for this run on this worker."""


@dataclass(frozen=True)
class OutputPage:
    text: str
    start: int
    """Byte offset of the first byte shown."""
    end: int
    """Byte offset after the last byte shown; where the next page begins."""
    total: int


class RunOutputs:
    """Kept outputs of one run. Handles are names of content, so a repeated call gets the same one."""

    def __init__(self, data_dir: Path, run_key: str) -> None:
        self.directory = data_dir / "outputs" / run_key

    def file(self, handle: str) -> Path:
        """Where the output of that handle is, if it is kept here.

        Raises:
            NoSuchOutput: no handle looks like that.
        """
        if not _HANDLE.match(handle):
            raise NoSuchOutput(handle)
        return self.directory / handle

    def observe(self, text: str, *, is_error: bool = False) -> Observation:
        """An observation of at most `INLINE_OUTPUT_BYTES`; a longer text is kept whole in a file."""
        encoded = text.encode("utf-8", "backslashreplace")
        if len(encoded) <= INLINE_OUTPUT_BYTES:
            return Observation(text=encoded.decode(), is_error=is_error)
        with self.recorder() as recorder:
            recorder.write(encoded)
        return recorder.observation(is_error=is_error)

    def keep(self, observation: Observation) -> Observation:
        """The same, and what it shows in a file, if it is so long that a stub may take its place in the
        transcript and no file holds it yet."""
        encoded = observation.text.encode()
        if observation.spill is not None or len(encoded) <= STUBBED_OVER_BYTES:
            return observation
        with self.recorder(inline_bytes=STUBBED_OVER_BYTES) as recorder:
            recorder.write(encoded)
        return observation.model_copy(update={"spill": recorder.handle})

    def recorder(self, *, inline_bytes: int = INLINE_OUTPUT_BYTES) -> "Recorder":
        """Takes an output piece by piece in constant memory."""
        return Recorder(self.directory, inline_bytes)

    def page(self, handle: str, offset: int, limit: int) -> OutputPage:
        """At most `limit` bytes from `offset` (negative: from the end), cut between characters, and
        after a line's end where there is one.

        Raises:
            NoSuchOutput: unknown handle; also one of another run.
        """
        try:
            descriptor = os.open(self.file(handle), os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise NoSuchOutput(handle) from None
        with os.fdopen(descriptor, "rb") as file:
            total = os.fstat(file.fileno()).st_size
            start = max(total + offset, 0) if offset < 0 else min(offset, total)
            file.seek(start)
            raw = file.read(limit)
        skipped = 0
        while skipped < min(3, len(raw)) and raw[skipped] & 0xC0 == 0x80:
            skipped += 1
        raw = raw[skipped:]
        if start + skipped + len(raw) < total:
            raw = _whole_lines(raw)
        start += skipped
        return OutputPage(raw.decode("utf-8", "replace"), start, start + len(raw), total)


class Recorder:
    """Keeps the head and the tail of a UTF-8 stream in memory and, if it doesn't fit inline, the whole
    in a file."""

    def __init__(self, directory: Path, inline_bytes: int) -> None:
        self._directory = directory
        self._partial = directory / f"part-{secrets.token_hex(8)}"
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        room = inline_bytes - _NOTE_BYTES
        self._inline = inline_bytes
        self._head_room = int(room * _HEAD_SHARE)
        self._tail_room = room - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes written so far."""
        self.handle: str | None = None
        """Of the file, once closed; None if all of it fits inline."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        self._file.close()
        if error is not None:
            self._partial.unlink()
            return
        self.handle = f"out-{self._digest.hexdigest()[:16]}"
        self._partial.replace(self._directory / self.handle)

    def write(self, data: bytes) -> None:
        """Append UTF-8 text, cut at any byte."""
        kept = data[: max(KEPT_BYTES - self.total, 0)]
        if self._file is None and self.total + len(data) > self._inline:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = self._partial.open("xb")
            self._file.write(self._head)  # which is all that came so far
        if self._file is not None:
            self._file.write(kept)
        self._digest.update(kept)
        self.total += len(data)
        if len(self._head) <= self._inline:
            self._head += data[: self._inline + 1 - len(self._head)]
        self._tail += data
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: -self._tail_room]

    def observation(self, *, prefix: str = "", is_error: bool = False) -> Observation:
        """What the model sees; call it after the recorder was closed."""
        if self.total <= self._inline:
            text = self._head[: self.total].decode("utf-8", "replace")
            return Observation(text=prefix + text, is_error=is_error)
        assert self.handle is not None
        head = _whole_lines(bytes(self._head[: self._head_room]))
        tail = bytes(self._tail[-self._tail_room :])
        tail = _from_line(tail)
        omitted = self.total - len(head) - len(tail)
        kept = "" if self.total <= KEPT_BYTES else f", of which the first {KEPT_BYTES:,} are kept"
        begin = "" if head.endswith(b"\n") else "\n"
        note = (
            f"{begin}[... {omitted:,} of {self.total:,} bytes omitted{kept}; "
            f'read_output("{self.handle}", offset={len(head)}) shows them ...]\n'
        )
        text = head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")
        return Observation(
            text=prefix + text, is_error=is_error, omitted_bytes=omitted, spill=self.handle
        )


def _whole_lines(raw: bytes) -> bytes:
    """Cut after the last line's end, or else between two characters."""
    cut = raw.rfind(b"\n") + 1
    if cut > len(raw) // 2:
        return raw[:cut]
    for back in range(1, min(4, len(raw)) + 1):
        lead = raw[-back]
        if lead & 0xC0 != 0x80:
            length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return raw if back >= length else raw[:-back]
    return raw


def _from_line(raw: bytes) -> bytes:
    """Begin after a line's end, or else at a character."""
    cut = raw.find(b"\n") + 1
    if 0 < cut < len(raw) // 2:
        return raw[cut:]
    skipped = 0
    while skipped < min(3, len(raw)) and raw[skipped] & 0xC0 == 0x80:
        skipped += 1
    return raw[skipped:]
