"""The person's terminal: where to write, and how to ask without blocking the event loop."""

import asyncio
import os
import sys

from rich.console import Console

_PIPED_WIDTH = 1_000  # what reads a pipe wraps lines itself


def console(*, to_stderr: bool = False, plain: bool = False) -> Console:
    """Colours and redrawing only on a terminal; NO_COLOR is respected.

    Args:
        plain: Neither on a terminal.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(
        stderr=to_stderr, highlight=False, width=width, force_terminal=False if plain else None
    )


def can_ask(out: Console) -> bool:
    """Whether there is a person: input and output are both a terminal."""
    return sys.stdin.isatty() and out.file.isatty()


async def ask_line(out: Console, prompt: str) -> str | None:
    """Ask for one line; None at the end of input. Cancellable, unlike a read in a thread."""
    out.out(prompt, end="", highlight=False)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = sys.stdin.fileno()
    typed = b""
    loop.add_reader(descriptor, ready.set)
    try:
        while not typed.endswith(b"\n"):
            ready.clear()
            await ready.wait()
            read = os.read(descriptor, 4096)
            if not read:
                return None
            typed += read
    finally:
        loop.remove_reader(descriptor)
    return typed.decode(errors="replace").strip()
