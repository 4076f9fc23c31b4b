"""Behind `gc`."""

import json
import time
from collections.abc import Collection

import click
from temporalio.client import Client, WorkflowExecutionStatus

from io_harness.activities.gc import Ages, KeptRun, KnownRuns, collect, kept_runs, plan
from io_harness.activities.prepare import namespace_id
from io_harness.activities.settings import Settings
from io_harness.activities.shared_store import store_of
from io_harness.connection import connect
from io_harness.data_dir import usable
from io_harness.workflows.keys import key_stem, run_key

from .exits import CommandFailed, Exit

_KEY_TAIL = len("-12345678")


async def collect_garbage(
    run_days: float, copy_days: float, *, dry_run: bool, as_json: bool
) -> Exit:
    settings = Settings.from_env()
    usable(settings.data_dir)
    store = store_of(settings)
    ages = Ages(run_days=run_days, copy_days=copy_days)
    kept = await kept_runs(settings, store)
    async with connect(settings) as connection:
        known = await _known(connection.client, kept)
    garbage = plan(kept, known, ages, time.time())
    if not dry_run:
        await collect(garbage, settings, store, ages)
    if as_json:
        removed = {"copies": garbage.copies, "runs": garbage.runs, "dry_run": dry_run}
        click.echo(json.dumps(removed))
        return Exit.OK
    verb = "would remove" if dry_run else "removed"
    for key in garbage.copies:
        click.echo(f"{verb} the working copy of {key}")
    for key in garbage.runs:
        click.echo(f"{verb} everything of {key}")
    count = len(kept) - len(garbage.runs)
    click.echo(f"{count} of {len(kept)} runs stay in {settings.data_dir}", err=True)
    return Exit.OK


async def _known(client: Client, kept: Collection[KeptRun]) -> KnownRuns:
    """What the namespace knows of the kept runs.

    Raises:
        CommandFailed: the server doesn't say which namespace it is; then nothing is safe to remove.
    """
    namespace = await namespace_id(client)
    if namespace is None:
        raise CommandFailed(
            Exit.SERVER,
            f"the server does not describe the namespace {client.namespace!r}, so nobody can tell "
            "which runs are its own; nothing was removed",
        )
    stems = {run.key[:-_KEY_TAIL] for run in kept}
    running: set[str] = set()
    closed: set[str] = set()
    async for execution in client.list_workflows("WorkflowType = 'AgentRun'"):
        if key_stem(execution.id) not in stems:
            continue
        # Lists don't say which execution a chain began with; a description does.
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        described = await handle.describe()
        first = described.raw_description.workflow_execution_info.first_run_id or execution.run_id
        alive = described.status is WorkflowExecutionStatus.RUNNING
        (running if alive else closed).add(run_key(execution.id, first))
    return KnownRuns(namespace=namespace, running=running, closed=closed - running)
