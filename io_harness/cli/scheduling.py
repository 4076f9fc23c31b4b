"""Behind `schedule`."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click
from rich.table import Table
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleListActionStartWorkflow,
    ScheduleListDescription,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.service import RPCError, RPCStatusCode

from io_harness import TASK_QUEUE, runs
from io_harness.activities.settings import Settings
from io_harness.connection import connect

from . import task
from .exits import CommandFailed, Exit
from .session import require_lasting_server
from .terminal import console

_CATCH_UP = timedelta(days=1)
_NEXT = 3


async def create_schedule(
    name: str, file: Path, settings: Sequence[str], *, cron: str, time_zone: str | None
) -> Exit:
    """
    Raises:
        CommandFailed: USAGE; the name is taken, or the server can't read the expression or zone.
    """
    contract = task.build(file, {}, settings)
    require_lasting_server("a schedule")
    action = ScheduleActionStartWorkflow(
        runs.WORKFLOW,
        contract,
        id=name,
        task_queue=TASK_QUEUE,
        static_summary=runs.one_line(contract.goal),
    )
    spec = ScheduleSpec(cron_expressions=[cron], time_zone_name=time_zone)
    wanted = Schedule(action, spec, policy=SchedulePolicy(catchup_window=_CATCH_UP))
    async with connect(Settings.from_env()) as connection:
        try:
            handle = await connection.client.create_schedule(name, wanted)
        except ScheduleAlreadyRunningError as error:
            raise CommandFailed(Exit.USAGE, f"there is a schedule {name!r} already") from error
        except RPCError as error:
            if error.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            raise CommandFailed(Exit.USAGE, f"--cron, --time-zone: {error.message}") from error
        times = (await handle.describe()).info.next_action_times[:_NEXT]
        click.echo(name)
        shown = ", ".join(f"{at:%Y-%m-%d %H:%M %Z}" for at in times)
        click.echo(f"next starts: {shown or 'none'}", err=True)
        if not await runs.workers(connection.client):
            click.echo("No worker polls yet; start one with `io-harness worker`.", err=True)
    return Exit.OK


async def list_schedules(*, as_json: bool) -> Exit:
    async with connect(Settings.from_env()) as connection:
        found = [s async for s in await connection.client.list_schedules() if _starts_runs(s)]
    if as_json:
        for each in found:
            click.echo(json.dumps({"name": each.id, "next": _next(each), "last": _last(each)}))
        return Exit.OK
    if not found:
        click.echo("no schedules", err=True)
        return Exit.OK
    table = Table("schedule", "next start (UTC)", "last run", box=None, header_style="dim")
    for each in found:
        table.add_row(each.id, _next(each) or "", _last(each) or "")
    console().print(table)
    return Exit.OK


async def delete_schedule(name: str) -> Exit:
    async with connect(Settings.from_env()) as connection:
        try:
            await connection.client.get_schedule_handle(name).delete()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            raise CommandFailed(Exit.USAGE, f"there is no schedule {name!r}") from error
    return Exit.OK


def _starts_runs(listed: ScheduleListDescription) -> bool:
    action = listed.schedule.action if listed.schedule else None
    return isinstance(action, ScheduleListActionStartWorkflow) and action.workflow == runs.WORKFLOW


def _next(listed: ScheduleListDescription) -> str | None:
    times = listed.info.next_action_times if listed.info else ()
    return times[0].isoformat() if times else None


def _last(listed: ScheduleListDescription) -> str | None:
    """Id of the run that was started last."""
    actions = listed.info.recent_actions if listed.info else ()
    started = getattr(actions[-1].action, "workflow_id", None) if actions else None
    return str(started) if started else None
