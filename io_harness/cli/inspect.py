"""`status`, `list`, `trace`, `watch`, `cancel`, `schema`."""

import json
from pathlib import Path
from typing import Literal

import click

from .command import runs as runs_async
from .command import shows_a_run
from .exits import CommandFailed, Exit

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_RUN = click.argument("run")


@click.command()
@_RUN
@click.option("--approve-all", "approvals", flag_value="approve", default="prompt",
              help="Approve whatever asks.")  # fmt: skip
@click.option("--deny-asks", "approvals", flag_value="deny", help="Deny whatever asks.")
@shows_a_run
@runs_async
async def watch(
    run: str,
    approvals: Literal["prompt", "approve", "deny"],
    as_json: bool,
    verbose: bool,
    quiet: bool,
    plain: bool,
) -> Exit:
    """Follow a run live, from its first step, and work on it where nobody else does.

    \b
    Examples:
      io-harness watch fix-iso-weeks
      io-harness watch fix-iso-weeks --deny-asks --json 2>progress.log

    \b
    Exit codes:
      As those of `io-harness run`: 0 only for verified and landed work, 5 if it waits.
    """
    from .running import Shown
    from .running import watch as follow

    return await follow(run, approvals=approvals, shown=Shown(as_json, verbose, quiet, plain))


@click.command()
@_RUN
@_JSON
@runs_async
async def status(run: str, as_json: bool) -> Exit:
    """Say where a run is and what it has spent.

    \b
    Examples:
      io-harness status fix-iso-weeks
      io-harness status fix-iso-weeks --json | jq .spend.usd

    \b
    Exit codes:
      0 whatever became of the run; `watch` tells that by its exit code.
      2 there is no such run
    """
    from .inspecting import show_status

    return await show_status(run, as_json=as_json)


@click.command("list")
@click.option("--state", help="Only runs in this state: working, waiting, success, ...")
@click.option("--limit", "-n", default=20, show_default=True, help="How many, newest first.")
@_JSON
@runs_async
async def list_(state: str | None, limit: int, as_json: bool) -> Exit:
    """List the runs of the namespace.

    \b
    Examples:
      io-harness list --state waiting
      io-harness list -n 100 --json | jq -r .id
    """
    from .inspecting import show_list

    return await show_list(state, limit, as_json=as_json)


@click.command()
@_RUN
@click.option("--format", "-f", type=click.Choice(["text", "json", "atif", "html"]), default="text",
              show_default=True, help="json: an object per step. atif: one document of the Agent "
              "Trajectory Interchange Format. html: one page for a reviewer.")  # fmt: skip
@click.option("--json", "format", flag_value="json", help="Same as --format json.")
@click.option("--html", "format", flag_value="html", help="Same as --format html.")
@click.option("--tree", is_flag=True, help="Show the run's sub-agents instead of its steps.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              help="Write to this file.")  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Show the output of every tool call.")
@runs_async
async def trace(
    run: str,
    format: Literal["text", "json", "atif", "html"],
    tree: bool,
    output: Path | None,
    verbose: bool,
) -> Exit:
    """Show what happened, step by step, from the run's history alone.

    The run may be live or closed. A page or a trajectory of a live run tells it up to now.

    \b
    Examples:
      io-harness trace fix-iso-weeks --verbose
      io-harness trace fix-iso-weeks --html -o report.html
      io-harness trace fix-iso-weeks --format atif -o trajectory.json
    """
    if format in ("atif", "html"):
        if tree:
            raise CommandFailed(Exit.USAGE, "--tree goes with --format text or json")
        from .reporting import write_report

        return await write_report(run, format, output)
    if output is not None:
        raise CommandFailed(Exit.USAGE, "--output goes with --format atif or html")
    from .inspecting import show_trace, show_tree

    if tree:
        return await show_tree(run, as_json=format == "json")
    return await show_trace(run, as_json=format == "json", verbose=verbose)


@click.command()
@_RUN
@runs_async
async def cancel(run: str) -> Exit:
    """Cancel a run. Its commands are ended and its work is kept.

    \b
    Examples:
      io-harness cancel fix-iso-weeks

    \b
    Exit codes:
      0 it is asked to end, or has ended    2 it is over already, or there is none
    """
    from io_harness import runs
    from io_harness.activities.settings import Settings

    from .session import session

    async with session(Settings.from_env()) as connection:
        await runs.require_running(connection.client, run)
        await runs.cancel(connection.client, run)
        click.echo(f"cancelling {run}", err=True)
        if connection.held:  # this process is the worker that ends it
            await runs.ended(connection.client, run)
    return Exit.OK


@click.command()
@click.argument("what", type=click.Choice(["contract", "result", "decision"]), default="contract")
def schema(what: str) -> None:
    """Print the JSON Schema of a contract, a result or a decision.

    \b
    Examples:
      io-harness schema >contract.schema.json
      io-harness schema decision | jq .properties.verdict
    """
    from io_harness.workflows.approvals import Decision
    from io_harness.workflows.contract import contract_schema
    from io_harness.workflows.result import RunResult

    match what:
        case "contract":
            found = contract_schema()
        case "result":
            found = RunResult.model_json_schema()
        case "decision":
            found = Decision.model_json_schema()
        case _:
            raise CommandFailed(Exit.USAGE, f"no schema of {what}")
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))
