"""Starts a run, follows it, and says how it ended: behind `run`, `demo` and `watch`."""

import dataclasses
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from io_harness import TASK_QUEUE, runs, trace
from io_harness.activities.settings import Settings
from io_harness.connection import Connection, connect
from io_harness.workflows.contract import TaskContract

from . import decide, render
from .exits import Exit, exit_of
from .follow import Follower
from .session import require_lasting_server, session
from .terminal import console


@dataclass(frozen=True)
class Shown:
    """How much of a run is shown, and how."""

    as_json: bool = False
    """The result as one line of JSON on stdout, all else on stderr."""
    verbose: bool = False
    quiet: bool = False
    plain: bool = False

    def console(self) -> Console:
        return console(to_stderr=self.as_json, plain=self.plain)


@dataclass(frozen=True)
class Start:
    """What to start."""

    contract: TaskContract
    id: str | None = None
    record: Path | None = None


async def start_and_leave(start: Start, *, as_json: bool) -> Exit:
    """Start the run for the workers that poll its queue."""
    if start.record is not None:
        raise click.UsageError("--record needs this process to stay: leave out --detach")
    require_lasting_server("--detach")
    async with connect(Settings.from_env()) as connection:
        handle = await runs.start(connection.client, start.contract, id=start.id)
        ui = connection.ui(handle.id, handle.result_run_id)
        if not await runs.workers(connection.client):
            click.echo("No worker polls yet; start one with `io-harness worker`.", err=True)
    if as_json:
        click.echo(json.dumps({"run": handle.id, "run_id": handle.result_run_id, "ui": ui}))
    else:
        click.echo(handle.id)
        click.echo(f"Follow it with `io-harness watch {handle.id}`" + _at(ui), err=True)
    return Exit.OK


async def start_and_follow(start: Start, *, approvals: decide.Policy, shown: Shown) -> Exit:
    """Start the run and stay with it until it has ended or waits for somebody else."""
    settings = dataclasses.replace(Settings.from_env(), record=start.record)
    id = start.id or runs.new_id(start.contract.goal)
    # A recording is made by this process alone: on a queue of its own nobody else takes a call.
    queue = f"{TASK_QUEUE}-{id}" if start.record else TASK_QUEUE
    out = shown.console()
    async with session(settings, task_queue=queue) as connection:
        handle = await runs.start(connection.client, start.contract, id=id, task_queue=queue)
        if not shown.quiet:
            out.print(f"[dim]run[/]         {escape(id)}")
            if ui := connection.ui(id, handle.result_run_id):
                out.print(f"[dim]watch[/]       {escape(ui)}", soft_wrap=True)
        follower = _follower(connection, id, approvals, shown, out)
        code = await finish(follower, as_json=shown.as_json)
    if start.record is not None:
        out.print(
            f"recorded to {start.record}; replay it with --model replay/{start.record}",
            markup=False,
        )
    return code


def _follower(
    connection: Connection, run: str, approvals: decide.Policy, shown: Shown, out: Console
) -> Follower:
    return Follower(
        connection, run, out, approvals=approvals, verbose=shown.verbose, quiet=shown.quiet
    )


async def watch(run: str, *, approvals: decide.Policy, shown: Shown) -> Exit:
    """Stay with a run that exists; this process works on it where nobody else does."""
    async with session(Settings.from_env()) as connection:
        with runs.named(run):
            await runs.handle(connection.client, run).describe()
        follower = _follower(connection, run, approvals, shown, shown.console())
        return await finish(follower, as_json=shown.as_json)


async def finish(follower: Follower, *, as_json: bool) -> Exit:
    """Follow to the end and report it."""
    ended = await follower.until_end()
    out = follower.out
    if ended is None:
        waiting = await runs.pending(follower.client, follower.run)
        await _say_how_to_decide(out, follower.connection, follower.run)
        if as_json:
            shown = [p.model_dump(mode="json") for p in waiting]
            click.echo(json.dumps({"run": follower.run, "outcome": None, "pending": shown}))
        return Exit.PENDING
    code = exit_of(ended)
    if as_json:
        click.echo(_as_json(follower.run, ended, code))
    else:
        out.print(render.result(ended))
    return code


async def _say_how_to_decide(out: Console, connection: Connection, run: str) -> None:
    name = escape(shlex.quote(run))
    out.print(f"\n{escape(run)} waits for a decision, for as long as it takes. To decide:")
    out.print(f"  io-harness approve {name}     io-harness deny {name} --reason '...'")
    if connection.held:  # the server ends with this command, and its UI too
        out.print(f"and then `io-harness watch {name}`, which makes it go on, or `io-harness up`.")
        return
    described = await runs.handle(connection.client, run).describe()
    if page := connection.ui(run, described.run_id, "user-metadata"):
        out.print(f"What is asked stands in the Temporal UI too: {escape(page)}", soft_wrap=True)


def _as_json(run: str, ended: trace.EndedStep, code: Exit) -> str:
    result = ended.result.model_dump(mode="json") if ended.result else None
    return json.dumps(
        {
            "run": run,
            "outcome": ended.result.outcome if ended.result else ended.status,
            "exit_code": int(code),
            "error": None if ended.result else {"code": ended.code, "message": ended.message},
            "result": result,
        },
        ensure_ascii=False,
    )


def _at(ui: str | None) -> str:
    return f", or at {ui}" if ui else ""
