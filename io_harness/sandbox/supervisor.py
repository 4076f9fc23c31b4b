"""Starts, feeds, watches and ends one command."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from . import process_tree
from .backend import Backend, Exit, Running, Stdio
from .errors import SandboxError
from .isolation import Isolation
from .plan import Plan
from .result import Cause, Completed
from .streams import Streams

# Windows lacks the names; the numbers are Linux', and no other value is compared with them.
SIGXCPU, SIGXFSZ = 24, 25
WATCH_SECONDS = 0.05, 0.25
"""First and last pause between two looks at the tree."""


async def supervise(
    plan: Plan,
    backend: Backend,
    isolation: Isolation,
    spill: Path | None,
    on_output: Callable[[bytes], None] | None,
) -> Completed:
    """Runs the plan in this backend, to the end of the whole tree."""
    begun = time.monotonic()
    with Streams(plan, spill, on_output) as streams:
        running = await start(backend, plan, streams.stdio)
        streams.close_far_ends()
        cause: Cause | None = None
        try:
            cause, ended = await _until_end(running, plan, streams)
        except SandboxError as error:
            await streams.drain()
            said = streams.stdout.text(2000).strip() or streams.stderr.text(2000).strip()
            raise SandboxError(f"{error}: {said}" if said else str(error)) from error
        finally:
            # A second cancellation must not leave the tree alive.
            await asyncio.shield(end(running))
        await streams.drain()
        return _completed(cause, ended, streams, isolation, time.monotonic() - begun)


async def start(backend: Backend, plan: Plan, stdio: Stdio) -> Running:
    """A start is short, and can't be taken back half-way: a cancellation waits for it."""
    starting = asyncio.ensure_future(backend.start(plan, stdio))
    try:
        await asyncio.wait({starting})
    except asyncio.CancelledError:
        while not starting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await asyncio.shield(end(starting.result()))
        raise
    return starting.result()


async def end(running: Running) -> None:
    """Ends what is left of the tree."""
    await running.close()


async def _until_end(running: Running, plan: Plan, streams: Streams) -> tuple[Cause | None, Exit]:
    """Waits for the main process, or for the first limit that the tree reaches."""
    waiting = asyncio.ensure_future(running.wait())
    watching = asyncio.ensure_future(first_breach(running, plan))
    failing = asyncio.ensure_future(streams.failure())
    try:
        await asyncio.wait(
            {waiting, watching, failing},
            timeout=plan.limits.wall_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if waiting.done():
            return None, waiting.result()
        if failing.done():
            failing.result()
        cause = watching.result() if watching.done() else "wall"
        running.kill()
        return cause, await waiting
    finally:
        for task in (waiting, watching, failing):
            task.cancel()


async def first_breach(running: Running, plan: Plan) -> Cause:
    """Looks at the tree again and again; returns which limit it passed."""
    limits = plan.limits
    pause, longest = WATCH_SECONDS
    while True:
        await asyncio.sleep(pause)
        pause = min(longest, pause * 1.5)
        members = running.members()
        used = process_tree.usage(members)
        if used.count > limits.processes:
            return "pids"
        if used.cpu_seconds > limits.cpu_seconds:
            return "cpu"
        # The sum of resident sets is cheap to read and never less than the truth.
        most = used.rss_bytes + process_tree.memory_file_bytes(members)
        if most > limits.memory_bytes and process_tree.memory_bytes(members) > limits.memory_bytes:
            return "memory"


def _completed(
    cause: Cause | None, ended: Exit, streams: Streams, isolation: Isolation, seconds: float
) -> Completed:
    if cause is None:
        if ended.signal == SIGXCPU:
            cause = "cpu"
        elif ended.signal == SIGXFSZ:
            cause = "disk"
        else:
            cause = "exited" if ended.signal is None else "signalled"
    return Completed(
        cause=cause,
        exit_code=ended.code if cause == "exited" else None,
        signal=ended.signal,
        stdout=streams.stdout,
        stderr=streams.stderr,
        seconds=seconds,
        isolation=isolation,
    )
