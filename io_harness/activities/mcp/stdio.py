"""A server on the standard streams of a sandboxed process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from io_harness import sandbox
from io_harness.sandbox.attached import Attached, attach

from .errors import NotStarted
from .link import MESSAGE_BYTES, Link
from .text import plain

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]

_CHUNK = 64 * 1024
_END_SECONDS = 0.5
_STDERR = 2_000


@asynccontextmanager
async def stdio_link(plan: sandbox.Plan, link: Link) -> AsyncIterator[Streams]:
    """Start the plan's command and yield its messages. `link` hears how it goes.

    Raises:
        NotStarted: the sandbox can't run it.
    """
    try:
        async with attach(plan) as attached:
            link.started = True
            link.tail = lambda: _tail(attached)
            async with _streams(attached, link) as streams:
                yield streams
    except sandbox.SandboxError as error:
        raise NotStarted(f"the sandbox could not run it: {error}") from error


@asynccontextmanager
async def _streams(attached: Attached, link: Link) -> AsyncIterator[Streams]:
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with into:
            try:
                async for line in _lines(attached, link):
                    if (message := _message(line, link)) is not None:
                        await into.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
            link.end(await _how_it_ended(attached))

    async def write() -> None:
        async with out_of:
            async for item in out_of:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await attached.write(data.encode() + b"\n")
                except ConnectionError:
                    link.end("it closed its input")
                    return

    async with incoming, outgoing, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()


async def _lines(attached: Attached, link: Link) -> AsyncIterator[bytes]:
    """Lines of at most MESSAGE_BYTES; a longer one ends the connection, since nobody knows which
    request it would have answered."""
    rest = bytearray()
    while chunk := await attached.stdout.read(_CHUNK):
        rest += chunk
        if b"\n" in chunk:
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
            for line in lines:
                yield bytes(line)
        if len(rest) > MESSAGE_BYTES:
            link.end(f"it sent a message of more than {MESSAGE_BYTES // 2**20} MiB")
            return


def _message(line: bytes, link: Link) -> SessionMessage | None:
    if not line.strip():
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        link.garbage(line)
        return None
    link.count()
    return SessionMessage(message)


async def _how_it_ended(attached: Attached) -> str:
    """Why there is no more output."""
    with anyio.move_on_after(_END_SECONDS):
        cause = await attached.wait()
        if cause in ("memory", "pids", "cpu"):
            return f"it was stopped at its limit of {cause}"
    ended = attached.exit
    if ended is None:
        return "it closed its output"
    how = f"exit code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
    return f"it ended with {how}"


def _tail(attached: Attached) -> str:
    """The last of what it wrote to standard error."""
    stderr = attached.stderr
    raw = (stderr.head if not stderr.tail else stderr.tail)[-_STDERR:]
    return plain(raw.decode("utf-8", "replace"), _STDERR).strip()
