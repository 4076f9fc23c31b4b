"""`mcp`: the harness as an MCP server, and logins to other MCP servers."""

from pathlib import Path

import click

from .command import runs as runs_async
from .exits import Exit


@click.group(invoke_without_command=True)
@click.option(
    "--no-decide", is_flag=True, help="Let clients look at approvals, and not decide them."
)
@click.option(
    "--task-queue", metavar="NAME", help="Queue of the runs it starts; by default io-harness."
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve streamable HTTP on this port of 127.0.0.1 instead; 0 takes a free one. The printed "
    "address holds a token.",
)
@click.pass_context
def mcp(context: click.Context, no_decide: bool, task_queue: str | None, port: int | None) -> None:
    """Serve MCP on standard input and output, for an editor or another agent.

    A client can start runs, follow them, see and decide approvals, and read results. Whoever can
    decide approvals can approve what an agent asks for: give --no-decide to clients that you would
    not trust with that.

    \b
    Examples:
      io-harness mcp --no-decide
      io-harness mcp --http 8242
    """
    if context.invoked_subcommand is None:
        context.invoke(_serve, no_decide=no_decide, task_queue=task_queue, port=port)


@click.command()
@runs_async
async def _serve(no_decide: bool, task_queue: str | None, port: int | None) -> Exit:
    from io_harness import TASK_QUEUE

    from .mcp_serving import serve_mcp

    return await serve_mcp(port=port, decides=not no_decide, task_queue=task_queue or TASK_QUEUE)


@mcp.command()
@click.argument("contract", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("server")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of 127.0.0.1 that the browser comes back to, where the client is registered with one; "
    "by default any free one.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address of the login's page.")
@runs_async
async def login(contract: Path, server: str, port: int, no_browser: bool) -> Exit:
    """Log in to an MCP server of a contract, for the workers of this host.

    SERVER is its id in mcp_servers. The tokens are kept in the data directory (IO_HARNESS_DATA),
    readable by you alone, and renewed by the workers that share it.

    \b
    Examples:
      io-harness mcp login task.yaml tracker
      io-harness mcp login task.yaml tracker --no-browser --port 8250

    \b
    Exit codes:
      0 logged in    1 nobody did, or the server refused    2 no such server in the contract
    """
    from .logging_in import log_in_to

    return await log_in_to(contract, server, port=port, browser=not no_browser)
