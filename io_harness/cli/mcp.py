"""`mcp`: the harness as an MCP server on standard streams."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.option(
    "--no-decide", is_flag=True, help="Let clients look at approvals, and not decide them."
)
@click.option(
    "--task-queue", metavar="NAME", help="Queue of the runs it starts; by default io-harness."
)
@runs_async
async def mcp(no_decide: bool, task_queue: str | None) -> Exit:
    """Serve MCP on standard input and output, for an editor or another agent.

    A client can start runs, follow them, see and decide approvals, and read results. Whoever can
    decide approvals can approve what an agent asks for: give --no-decide to clients that you would
    not trust with that.
    """
    from io_harness import TASK_QUEUE
    from io_harness.activities.settings import Settings
    from io_harness.mcp_server import build_server

    from .session import session

    queue = task_queue or TASK_QUEUE
    async with session(Settings.from_env(), task_queue=queue) as connection:
        server = build_server(
            connection.client, task_queue=queue, ui=connection.ui, decides=not no_decide
        )
        await server.run_stdio_async()
    return Exit.OK
