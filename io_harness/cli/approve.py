"""`approvals`, `approve`, `deny`."""

from typing import Literal

import click

from .command import runs as runs_async
from .exits import Exit

_RUN = click.argument("run")
_REQUEST = click.argument("request", required=False)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per request.")
@runs_async
async def approvals(as_json: bool) -> Exit:
    """List what waits for a human, over all runs.

    \b
    Examples:
      io-harness approvals
      io-harness approvals --json | jq -r .request.target
    """
    from .approving import show_waiting

    return await show_waiting(as_json=as_json)


@click.command()
@_RUN
@_REQUEST
@click.option("--reason", default="", help="Told to the agent; for a question, the answer.")
@click.option("--remember", is_flag=True, help="Also allow the suggested rule for this run.")
@click.option("--edit", is_flag=True, help="Change the call's arguments first, in $EDITOR.")
@runs_async
async def approve(run: str, request: str | None, reason: str, remember: bool, edit: bool) -> Exit:
    """Approve what a run waits for. REQUEST may be left out if only one waits.

    \b
    Examples:
      io-harness approve fix-iso-weeks
      io-harness approve fix-iso-weeks 4.0-1f0c --remember --reason 'go on like this'

    \b
    Exit codes:
      0 taken    1 nothing was changed with --edit
      2 nothing waits, several wait and none is named, or somebody else was faster
    """
    from .approving import Answer, answer

    return await answer(run, request, Answer("approve", reason, remember, edit))


@click.command()
@_RUN
@_REQUEST
@click.option("--reason", default="", help="Told to the agent.")
@click.option("--as", "verdict", type=click.Choice(["deny", "skip", "abort"]), default="deny",
              help="skip or abort, for a call whose result was lost.")  # fmt: skip
@runs_async
async def deny(
    run: str, request: str | None, reason: str, verdict: Literal["deny", "skip", "abort"]
) -> Exit:
    """Deny what a run waits for. REQUEST may be left out if only one waits.

    \b
    Examples:
      io-harness deny fix-iso-weeks --reason 'use the staging table'
      io-harness deny fix-iso-weeks 4.0-1f0c --as skip

    \b
    Exit codes:
      0 taken    2 nothing waits, several wait, or somebody else was faster
    """
    from .approving import Answer, answer

    return await answer(run, request, Answer(verdict, reason))
