"""Behind `status`, `list` and `trace`."""

import json
from datetime import UTC, datetime
from typing import Literal

import click
from rich.table import Table
from temporalio.client import WorkflowExecutionStatus

from io_harness import runs
from io_harness import trace as tracing
from io_harness.activities.settings import Settings
from io_harness.connection import connect
from io_harness.report.gather import gather
from io_harness.report.tree import tree_of
from io_harness.visible import visible
from io_harness.workflows.status import RunStatus

from . import render
from .exits import Exit
from .session import session
from .terminal import console


async def show_status(run: str, *, as_json: bool) -> Exit:
    """A closed run's result is in its history; a running one is asked, which needs a worker."""
    async with connect(Settings.from_env()) as connection:
        with runs.named(run):
            described = await runs.handle(connection.client, run).describe()
        if described.status != WorkflowExecutionStatus.RUNNING:
            return await show_end(run, as_json=as_json)
    async with session(Settings.from_env(), acts=False) as connection:
        found = await runs.status(connection.client, run)
        if as_json:
            click.echo(json.dumps({"run": run, **found.model_dump(mode="json")}))
            return Exit.OK
        out = console()
        out.print(f"{run}  {found.state}, step {found.step} of {found.budget.steps}", markup=False)
        out.print(visible(found.goal), markup=False)
        out.print(render.spend_text(found.spend))
        if found.plan.items:
            out.print(visible(found.plan.markdown()), markup=False)
        for pending in found.pending:
            out.print(render.approval(pending))
        page: Literal["history", "user-metadata"] = "user-metadata" if found.pending else "history"
        if ui := connection.ui(run, described.run_id, page):
            out.print(ui, soft_wrap=True)
        _hint(found)
    return Exit.OK


def _hint(found: RunStatus) -> None:
    if found.pending:
        click.echo("Decide with `io-harness approve` or `io-harness deny`.", err=True)


async def show_end(run: str, *, as_json: bool) -> Exit:
    async with connect(Settings.from_env()) as connection:
        async for step in tracing.read(connection.client, run):
            if isinstance(step, tracing.EndedStep):
                if as_json:
                    click.echo(step.model_dump_json())
                else:
                    console().print(render.result(step))
    return Exit.OK


async def show_list(state: str | None, limit: int, *, as_json: bool) -> Exit:
    async with connect(Settings.from_env()) as connection:
        found = [r async for r in runs.list_runs(connection.client, state=state, limit=limit)]
    if as_json:
        for run in found:
            click.echo(run.model_dump_json())
        return Exit.OK
    if not found:
        click.echo("no runs" + (f" in state {state}" if state else ""), err=True)
        return Exit.OK
    out = console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("run", "state", "repo", "model", "step", "USD", "started"):
        table.add_column(
            column,
            justify="right" if column in ("step", "USD") else "left",
            no_wrap=True,
            # An id is there to be copied: it is never cut.
            min_width=max(len(r.id) for r in found) if column == "run" else None,
        )
    for run in found:
        table.add_row(
            run.id,
            _state(run),
            run.repo or "",
            run.model or "",
            "" if run.step is None else str(run.step),
            "" if run.spend_usd is None else f"{run.spend_usd:.4f}",
            _ago(run.started),
        )
    out.print(table)
    return Exit.OK


def _state(run: runs.ListedRun) -> str:
    """A run that ended without a result left its state as it was then."""
    if run.status in ("failed", "terminated", "timed_out"):
        return f"{run.status}: {run.error}" if run.error else run.status
    return run.state or run.status


async def show_trace(run: str, *, as_json: bool, verbose: bool) -> Exit:
    out = console()
    async with connect(Settings.from_env()) as connection:
        with runs.named(run):
            async for step in tracing.read(connection.client, run):
                if as_json:
                    click.echo(tracing.STEP.dump_json(step))
                    continue
                shown = render.step(step, verbose=verbose)
                if shown is not None:
                    out.print(shown)
                if isinstance(step, tracing.EndedStep):
                    out.print(render.result(step))
    return Exit.OK


async def show_tree(run: str, *, as_json: bool) -> Exit:
    async with connect(Settings.from_env()) as connection:
        with runs.named(run):
            found = tree_of(await gather(connection.client, run))
    if as_json:
        click.echo(found.model_dump_json())
    else:
        console().print(render.tree(found))
    return Exit.OK


def _ago(at: datetime) -> str:
    seconds = (datetime.now(UTC) - at).total_seconds()
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name} ago"
    return f"{max(seconds, 0):.0f} s ago"
