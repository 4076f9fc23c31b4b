"""Calls tools of a server as the activity does, without a Temporal server around it."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from io_harness.activities.gate import Gate
from io_harness.activities.mcp.calls import McpServerTool
from io_harness.activities.mcp.catalogue import Listed, Server, offer
from io_harness.activities.mcp.opening import Place
from io_harness.activities.mcp.pool import Pool
from io_harness.activities.mcp.questions import Questions
from io_harness.activities.tools.errors import ToolError
from io_harness.workflows.mcp import McpSource, McpTools
from io_harness.workflows.mcp_contract import StdioServer
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import Grant
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule
from tests.unit.tools.conftest import make_context, make_contract

HERE = Path(__file__).parent


def hostile(*modes: str, **more: object) -> StdioServer:
    """A contract's entry for the hostile server, with short times."""
    return StdioServer.model_validate(
        {
            "id": "h",
            "command": sys.executable,
            "args": (str(HERE / "hostile.py"), *modes),
            "read": (str(HERE),),
            "connect_seconds": 60,
            "list_seconds": 5,
            "call_seconds": 10,
            **more,
        }
    )


def allowing_net(*targets: str) -> Policy:
    layer = Layer(name="test", rules=(Rule(effect="allow", act="net", target=targets),))
    return Policy(preset="unattended", layers=(layer,))


def silent() -> Questions:
    """Nobody answers."""
    return Questions("h", "t", {}, lambda digest: None, are="decline")


@dataclass
class Rig:
    root: Path
    data_dir: Path
    pool: Pool
    policy: Policy = field(default_factory=lambda: Policy(preset="unattended"))
    run_key: str = "run-1"
    progress: list[str] = field(default_factory=list)
    recorded: McpTools = field(default_factory=McpTools)

    def place(self) -> Place:
        contract = make_contract()
        return Place(self.run_key, contract, self.policy, Gate(self.policy), self.root)

    async def listed(self, server: Server) -> Listed:
        return await self.pool.listed(server, self.place())

    async def record(self, server: Server) -> McpSource:
        """List the tools and keep them as a run would."""
        source, tools = offer(server, await self.listed(server))
        self.recorded = McpTools(servers=(source,), tools=tools)
        return source

    async def call(
        self, server: Server, tool: str, grants: tuple[Grant, ...] = (), **arguments: JsonValue
    ) -> Observation:
        """Call a recorded tool; what is told to the model of an error is returned as text."""
        if not self.recorded.tools:
            await self.record(server)
        spec = next(t for t in self.recorded.tools if t.tool == tool)
        context = make_context(self.root, self.data_dir, spec.name, arguments, self.policy)
        object.__setattr__(context, "run_key", self.run_key)
        object.__setattr__(context, "progress", self.progress.append)
        object.__setattr__(context, "gate", Gate(self.policy, grants))
        try:
            return await McpServerTool(spec, server, self.policy, self.pool).call(
                arguments, context
            )
        except ToolError as error:
            return Observation(text=str(error), is_error=True)
