"""Behind `up` and `worker`."""

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path

import click
from temporalio.common import WorkerDeploymentVersion

from io_harness import TASK_QUEUE
from io_harness.activities.settings import Settings
from io_harness.connection import Connection, configured, connect
from io_harness.plugin import harness_worker
from io_harness.sandbox.log import get_logger
from io_harness.server import running_server

from . import logs
from .exits import CommandFailed, Exit
from .health import told_in
from .telemetry import observed

_log = get_logger(__name__)


@dataclass(frozen=True)
class Service:
    """What a process that stays was asked to be."""

    task_queue: str | None
    log_format: str
    log_level: str
    metrics: str | None
    """Where Prometheus may ask for metrics."""
    version: WorkerDeploymentVersion | None = None
    health_file: Path | None = None

    def says(self, event: str, **fields: str) -> None:
        """Tell who started it: in words, or to a collector of JSON as a record like any other."""
        if self.log_format == logs.Format.JSON:
            _log.info(event, **{name.lower(): value for name, value in fields.items()})
            return
        for name, value in fields.items():
            click.echo(f"{name:<10} {value}", err=True)
        click.echo(event, err=True)


async def serve(service: Service, *, brings_server: bool = False) -> Exit:
    """Work until SIGTERM or Ctrl-C, then drain.

    Args:
        brings_server: Whether it starts the embedded server where none is configured.

    Raises:
        CommandFailed: SERVER; there is no server to work for.
    """
    settings = Settings.from_env()
    if not brings_server and configured() is None and running_server(settings.data_dir) is None:
        raise CommandFailed(
            Exit.SERVER,
            "no Temporal server is configured and none runs here: set TEMPORAL_ADDRESS, or use "
            "`io-harness up`, which brings one",
        )
    logs.to_stderr(logs.Format(service.log_format), service.log_level)
    async with (
        observed(service.metrics) as seen,
        connect(settings, works=True, observed=seen) as connection,
    ):
        await _until_told(service, connection, settings)
    return Exit.OK


async def _until_told(service: Service, connection: Connection, settings: Settings) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    queue = service.task_queue or TASK_QUEUE
    facts = {"Temporal": connection.address}
    if connection.server:
        facts["UI"] = connection.server.ui
    facts["data"] = str(settings.data_dir)
    async with harness_worker(connection.client, task_queue=queue, version=service.version):
        async with told_in(service.health_file, connection.client):
            service.says(f"working on the task queue {queue!r}; Ctrl-C ends it", **facts)
            await told.wait()
        service.says("draining")
