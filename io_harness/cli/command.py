"""What all commands share: running a coroutine, and turning known failures into exit codes."""

import asyncio
import atexit
import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, ParamSpec

import click

from io_harness.visible import visible

from .exits import CommandFailed, Exit

P = ParamSpec("P")
_COLLECT_EVERY = (20_000, 50, 100)
"""Allocations between two garbage collections, and how many of a generation come before one of the
next. At Python's own 700 and 10 a command that imports everything spends a sixth of that time on
collections which find nothing, and a worker goes on so."""


def runs(body: Callable[P, Coroutine[Any, Any, Exit | None]]) -> Callable[P, NoReturn]:
    """Make a coroutine the body of a click command. What it returns is the exit code."""

    @functools.wraps(body)
    def run(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        gc.set_threshold(*_COLLECT_EVERY)
        try:
            code = asyncio.run(body(*args, **kwargs)) or Exit.OK
        except Exception as error:
            failed = known_failure(error)
            if failed is None:
                raise
            click.echo(f"Error: {visible(str(failed))}", err=True)
            code = failed.code
        except KeyboardInterrupt:
            code = Exit.CANCELLED
        _leave(code)

    return run


def shows_a_run(command: Callable[P, NoReturn]) -> Callable[P, NoReturn]:
    """Options of the commands that follow a run."""
    options = (
        click.option("--json", "as_json", is_flag=True,
                     help="Print the result as one JSON line; everything else goes to stderr."),
        click.option("--verbose", "-v", is_flag=True, help="Show the output of every tool call."),
        click.option("--quiet", "-q", is_flag=True,
                     help="Show no steps: only what asks for a decision, and how it ends."),
        click.option("--plain", is_flag=True,
                     help="No colours and no redrawing, as when the output is piped."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _leave(code: Exit) -> NoReturn:
    """End the process without tearing the interpreter down.

    Threads of Temporal's runtime outlive the event loop, and one that calls back into an interpreter
    that is being finalized aborts the process (temporalio/sdk-python#300): seen in one of four short
    commands on a busy machine.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):  # whoever read it has left
            stream.flush()
    os._exit(code)


def known_failure(error: Exception) -> CommandFailed | None:
    """What to tell the person; None for what is a bug of ours and keeps its traceback."""
    from temporalio.exceptions import WorkflowAlreadyStartedError
    from temporalio.service import RPCError

    from io_harness.connection import ConnectionFailed
    from io_harness.contract_file import ContractError
    from io_harness.data_dir import DataDirUnusable
    from io_harness.encryption import CannotDecrypt
    from io_harness.runs import DecisionRejected, NoSuchRun
    from io_harness.server import ServerError

    match error:
        case CommandFailed():
            return error
        case ContractError() | NoSuchRun() | DecisionRejected():
            return CommandFailed(Exit.USAGE, str(error))
        case WorkflowAlreadyStartedError():
            return CommandFailed(Exit.USAGE, f"a run {error.workflow_id!r} is running already")
        case ServerError() | ConnectionFailed() | CannotDecrypt():
            return CommandFailed(Exit.SERVER, str(error))
        case DataDirUnusable():
            return CommandFailed(Exit.WORKSPACE, str(error))
        case RPCError():
            return CommandFailed(Exit.SERVER, f"Temporal answered: {error}")
        case _:
            return None
