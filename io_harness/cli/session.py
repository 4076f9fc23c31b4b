"""A connection with a worker of its own, for commands that make runs go on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from io_harness import TASK_QUEUE, runs
from io_harness.activities.settings import Settings
from io_harness.connection import Connection, configured, connect

from . import logs
from .exits import CommandFailed, Exit


@asynccontextmanager
async def session(
    settings: Settings, *, task_queue: str = TASK_QUEUE, acts: bool = True
) -> AsyncIterator[Connection]:
    """Connect, and see to it that somebody works: with the embedded server this process does; with a
    configured server only if no worker polls the task queue.

    Args:
        acts: Whether the worker takes model and tool calls. Without, it answers queries and takes
            decisions, and begins nothing that the end of this process would cut short.
    """
    from .telemetry import observed_where_possible

    logs.to_file(settings.data_dir)
    async with AsyncExitStack() as stack:
        seen = await stack.enter_async_context(observed_where_possible())
        connection = await stack.enter_async_context(connect(settings, works=True, observed=seen))
        from io_harness.plugin import harness_worker  # all activities: loaded by `connect`

        if connection.held or not await runs.workers(connection.client, task_queue):
            await stack.enter_async_context(
                harness_worker(connection.client, task_queue=task_queue, acts=acts)
            )
        yield connection


def require_lasting_server(what: str) -> None:
    """A run that is left alone needs a server that stays.

    Args:
        what: What needs it, as the person named it.

    Raises:
        CommandFailed: USAGE; the embedded server would stop with this command.
    """
    from io_harness.server import running_server

    if configured() is None and running_server(Settings.from_env().data_dir) is None:
        raise CommandFailed(
            Exit.USAGE,
            f"{what} needs a server and a worker that stay: run `io-harness up` in another "
            "terminal, or set TEMPORAL_ADDRESS to a server of yours",
        )
