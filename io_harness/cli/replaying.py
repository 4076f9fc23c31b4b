"""Behind `replay`."""

from collections.abc import AsyncIterator

import click
from temporalio.client import Client, WorkflowHistory
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from io_harness import runs
from io_harness.activities.settings import Settings
from io_harness.connection import configured_codec, connect
from io_harness.plugin import HarnessPlugin

from . import logs
from .exits import Exit


async def replay_run(run: str) -> Exit:
    """Replay each execution of the run's chain, and print a line for each."""
    settings = Settings.from_env()
    logs.to_file(settings.data_dir)
    replayer = Replayer(
        workflows=[],
        plugins=[HarnessPlugin(settings, codec=configured_codec())],
        # Temporal's core would say the same again, at length, on our standard output.
        runtime=Runtime(telemetry=TelemetryConfig(logging=None)),
    )
    code = Exit.OK
    async with connect(settings) as connection:
        async for history in _histories(connection.client, run):
            replayed = await replayer.replay_workflow(history, raise_on_replay_failure=False)
            name = f"{history.run_id}  {len(history.events)} events"
            if replayed.replay_failure is None:
                click.echo(f"ok    {name}")
            else:
                click.echo(f"FAIL  {name}\n      {replayed.replay_failure}")
                code = Exit.FAILED
    return code


async def _histories(client: Client, run: str) -> AsyncIterator[WorkflowHistory]:
    """The history of every execution, from the first that the server still has."""
    with runs.named(run):
        described = await runs.handle(client, run).describe()
    first = described.raw_description.workflow_execution_info.first_run_id
    run_id = first or described.run_id
    while run_id:
        try:
            history = await client.get_workflow_handle(run, run_id=run_id).fetch_history()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND or run_id == described.run_id:
                raise
            click.echo(f"the server has no history of {run_id} any more", err=True)
            run_id = described.run_id
            continue
        yield history
        last = history.events[-1].workflow_execution_continued_as_new_event_attributes
        run_id = last.new_execution_run_id
