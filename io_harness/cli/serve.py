"""`up` and `worker`: processes that stay until they are told to end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .command import runs as runs_async
from .exits import CommandFailed, Exit


def _service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of both."""
    options = (
        click.option("--task-queue", metavar="NAME",
                     help="Queue to work on; by default io-harness."),
        click.option("--log-format", type=click.Choice(["console", "json"]), default="console",
                     envvar="IO_HARNESS_LOG_FORMAT", show_envvar=True, show_default=True,
                     help="How log lines look."),
        click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]),
                     default="info", envvar="IO_HARNESS_LOG_LEVEL", show_envvar=True,
                     show_default=True, help="Which log lines there are."),
        click.option("--metrics", metavar="[ADDRESS:]PORT", envvar="IO_HARNESS_METRICS",
                     show_envvar=True, help="Serve metrics for Prometheus at /metrics; on the "
                     "loopback interface if no address is given."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@_service
@runs_async
async def up(task_queue: str | None, log_format: str, log_level: str, metrics: str | None) -> Exit:
    """Run server, UI and worker until Ctrl-C. Runs that wait or were cut short go on.

    \b
    Examples:
      io-harness up
      io-harness up --metrics 9464 --log-format json
    """
    from .serving import Service, serve

    return await serve(Service(task_queue, log_format, log_level, metrics), brings_server=True)


@click.command()
@_service
@click.option("--deployment", metavar="NAME",
              help="Version the worker: the deployment it belongs to. Needs --build-id.")  # fmt: skip
@click.option("--build-id", metavar="ID", help="Version the worker: which build of the deployment.")
@click.option("--health-file", metavar="PATH", type=click.Path(path_type=Path),
              help="Write `ready` or `unreachable` there every five seconds, for probes.")  # fmt: skip
@runs_async
async def worker(
    task_queue: str | None,
    log_format: str,
    log_level: str,
    metrics: str | None,
    deployment: str | None,
    build_id: str | None,
    health_file: Path | None,
) -> Exit:
    """Run a worker for a Temporal server that is there already.

    SIGTERM and Ctrl-C let it drain: it takes nothing new, and what runs is given ten seconds before
    another worker must take it up.

    With --deployment and --build-id, runs stay on this build until they continue as new. It gets
    none before `temporal worker deployment set-current-version` makes it the current one.

    \b
    Examples:
      TEMPORAL_ADDRESS=temporal.example.com:7233 io-harness worker
      io-harness worker --deployment agents --build-id 2026-11-30 --health-file /run/health

    \b
    Exit codes:
      0 it drained    8 the server can't be reached
    """
    from temporalio.common import WorkerDeploymentVersion

    from .serving import Service, serve

    if (deployment is None) != (build_id is None):
        raise CommandFailed(Exit.USAGE, "give both --deployment and --build-id, or neither")
    version = WorkerDeploymentVersion(deployment, build_id) if deployment and build_id else None
    return await serve(Service(task_queue, log_format, log_level, metrics, version, health_file))
