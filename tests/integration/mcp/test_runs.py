"""Runs whose agent uses the tools of MCP servers, on the real Temporal server."""

from io_harness.workflows.result import Outcome
from tests.integration.conftest import Start
from tests.scripted import call, turn

from .npm_servers import stdio_server


async def test_a_stdio_servers_tool_is_called_in_a_run(start: Start) -> None:
    run = await start(
        turn(call("mcp__everything__echo", message="hello there", shows=("Echo: hello there",))),
        turn(call("finish", summary="echoed")),
        mcp_servers=[stdio_server("everything", "stdio")],
        verification={"kind": "none"},
    )
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
