"""`up` and `worker`: processes that stay until they are told to end."""

from typing import TYPE_CHECKING

import click

from .command import runs as runs_async
from .exits import Exit

if TYPE_CHECKING:
    from temporalio.worker import Worker

_TASK_QUEUE = click.option(
    "--task-queue", metavar="NAME", help="Queue to work on; by default io-harness."
)


@click.command()
@_TASK_QUEUE
@runs_async
async def up(task_queue: str | None) -> Exit:
    """Run server, UI and worker until Ctrl-C. Runs that wait or were cut short go on."""
    from io_harness import TASK_QUEUE
    from io_harness.activities.settings import Settings
    from io_harness.connection import connect
    from io_harness.plugin import harness_worker

    settings = Settings.from_env()
    async with connect(settings, works=True) as connection:
        click.echo(f"Temporal   {connection.address}", err=True)
        if connection.server:
            click.echo(f"UI         {connection.server.ui}", err=True)
        click.echo(f"data       {settings.data_dir}", err=True)
        await _until_told(harness_worker(connection.client, task_queue=task_queue or TASK_QUEUE))
    return Exit.OK


@click.command()
@_TASK_QUEUE
@click.option("--deployment", metavar="NAME",
              help="Version the worker: the deployment it belongs to. Needs --build-id.")  # fmt: skip
@click.option("--build-id", metavar="ID", help="Version the worker: which build of the deployment.")
@runs_async
async def worker(task_queue: str | None, deployment: str | None, build_id: str | None) -> Exit:
    """Run a worker for a Temporal server that is there already.

    SIGTERM and Ctrl-C let it drain: it takes nothing new, and what runs is given ten seconds before
    another worker must take it up.

    With --deployment and --build-id, runs stay on this build until they continue as new. It gets
    none before `temporal worker deployment set-current-version` makes it the current one.
    """
    from temporalio.common import WorkerDeploymentVersion

    from io_harness import TASK_QUEUE
    from io_harness.activities.settings import Settings
    from io_harness.connection import configured, connect
    from io_harness.plugin import harness_worker
    from io_harness.server import running_server

    from .exits import CommandFailed

    if (deployment is None) != (build_id is None):
        raise CommandFailed(Exit.USAGE, "give both --deployment and --build-id, or neither")
    version = WorkerDeploymentVersion(deployment, build_id) if deployment and build_id else None
    settings = Settings.from_env()
    if configured() is None and running_server(settings.data_dir) is None:
        raise CommandFailed(
            Exit.SERVER,
            "no Temporal server is configured and none runs here: set TEMPORAL_ADDRESS, or use "
            "`io-harness up`, which brings one",
        )
    async with connect(settings, works=True) as connection:
        click.echo(f"Temporal   {connection.address}", err=True)
        await _until_told(
            harness_worker(connection.client, task_queue=task_queue or TASK_QUEUE, version=version)
        )
    return Exit.OK


async def _until_told(worker: "Worker") -> None:
    """Work until SIGTERM or Ctrl-C, then drain."""
    import asyncio
    import signal

    from . import logs

    logs.to_stderr()
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    async with worker:
        click.echo(f"working on the task queue {worker.task_queue!r}; Ctrl-C ends it", err=True)
        await told.wait()
        click.echo("draining …", err=True)
