"""Behind `approvals`, `approve` and `deny`."""

import json
import shlex
from dataclasses import dataclass
from typing import Literal

import click
from temporalio.client import Client

from io_harness import runs
from io_harness.activities.settings import Settings
from io_harness.visible import visible
from io_harness.workflows.approvals import Decision, PendingApproval

from . import render
from .decide import edited_arguments, person
from .exits import CommandFailed, Exit
from .session import session
from .terminal import console


@dataclass(frozen=True)
class Answer:
    """A decision as given on the command line."""

    verdict: Literal["approve", "deny", "skip", "abort"]
    reason: str = ""
    remember: bool = False
    edit: bool = False


async def show_waiting(*, as_json: bool) -> Exit:
    out = console()
    shown = 0
    async with session(Settings.from_env(), acts=False) as connection:
        async for run, pending in runs.waiting(connection.client):
            shown += 1
            if as_json:
                click.echo(json.dumps({"run": run, **pending.model_dump(mode="json")}))
                continue
            out.print(render.approval(pending, run))
            name, request = shlex.quote(visible(run)), shlex.quote(pending.id)
            out.print(f"  io-harness approve {name} {request}", markup=False)
            out.print(f"  io-harness deny {name} {request} --reason '...'", markup=False)
    if not shown and not as_json:
        click.echo("nothing waits for a decision", err=True)
    return Exit.OK


async def answer(run: str, request: str | None, given: Answer) -> Exit:
    async with session(Settings.from_env(), acts=False) as connection:
        pending = await _the_one(connection.client, run, request)
        edit = None
        if given.edit:
            edit = await edited_arguments(connection.client, run, pending)
            if edit is None:
                raise CommandFailed(Exit.FAILED, "nothing was changed, so nothing was decided")
        decision = Decision(
            request=pending.id,
            verdict=_verdict(pending, given),
            by=person(),
            reason=given.reason,
            edit=edit,
            remember=given.remember,
        )
        await runs.decide(connection.client, run, decision)
        shown = visible(pending.request.target)
        click.echo(f"{decision.verdict}: {pending.request.act} {shown}", err=True)
        if connection.held:  # whether a worker is left can't be told for two minutes after a kill
            watch = f"io-harness watch {shlex.quote(run)}"
            click.echo(f"It goes on where a worker runs: `{watch}`, or `io-harness up`.", err=True)
    return Exit.OK


def _verdict(
    pending: PendingApproval, given: Answer
) -> Literal["approve", "deny", "retry", "skip", "abort"]:
    """A call whose result was lost is run again, skipped or given up, not approved or denied."""
    if pending.request.act == "retry":
        match given.verdict:
            case "approve":
                return "retry"
            case "deny":
                return "skip"
    return given.verdict


async def _the_one(client: Client, run: str, request: str | None) -> PendingApproval:
    waiting = await runs.pending(client, run)
    if request is not None:
        found = [p for p in waiting if p.id == request or p.id.startswith(request)]
    else:
        found = list(waiting)
    if len(found) == 1:
        return found[0]
    if not waiting:
        raise CommandFailed(Exit.USAGE, f"{run} waits for no decision")
    ids = "\n  ".join(f"{p.id}  {p.request.act} {p.request.target}" for p in waiting)
    what = "name one of them" if request is None else f"{request!r} names none or several of them"
    raise CommandFailed(Exit.USAGE, f"{run} waits for {len(waiting)} decisions; {what}:\n  {ids}")
