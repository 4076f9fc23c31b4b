"""The MCP tools of runs, as the rest of a worker knows them."""

from io_harness.activities.network import RunNetwork
from io_harness.activities.providers.base import ToolSpec
from io_harness.activities.run_reader import RunReader
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.errors import UnknownTool
from io_harness.activities.workspace_policy import RunPolicies
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.mcp import HELPERS
from io_harness.workflows.payloads import RunScope
from io_harness.workflows.rules import Rule

from .calls import McpServerTool
from .helpers import McpHelperTool
from .pool import Pool


class McpToolbox:
    """One per worker."""

    def __init__(
        self, settings: Settings, reader: RunReader, store: SnapshotStore, network: RunNetwork
    ) -> None:
        self.pool = Pool(settings, network)
        self._policies = RunPolicies(store)
        self._reader = reader

    async def specs(self, scope: RunScope) -> tuple[ToolSpec, ...]:
        """What the model is offered besides the built-in tools: as recorded in the run's history."""
        if not scope.mcp_digest:
            return ()
        recorded = await self._reader.mcp_tools(scope)
        return tuple(
            ToolSpec(tool.name, tool.description, tool.input_schema) for tool in recorded.tools
        )

    async def tool(
        self, scope: RunScope, contract: TaskContract, remembered: tuple[Rule, ...], name: str
    ) -> AnyTool | None:
        """The recorded tool of that name; None for a name that can't be one.

        Raises:
            UnknownTool: it could be one, and the run has none of that name.
        """
        if not name.startswith(HELPERS) or not contract.mcp_servers:
            return None
        recorded = await self._reader.mcp_tools(scope)
        spec = recorded.find(name)
        if spec is None:
            raise UnknownTool(f"there is no tool {name!r} now; the list of tools may have changed")
        policy = (await self._policies.policy(contract, scope.key)).remember(*remembered)
        if not spec.server:
            return McpHelperTool(spec, contract.mcp_servers, policy, self.pool)
        server = next(s for s in contract.mcp_servers if s.id == spec.server)
        return McpServerTool(spec, server, policy, self.pool)

    def changed(self, run_key: str) -> bool:
        """Whether a server of the run said that its list is another one now."""
        return self.pool.stale(run_key)

    async def close_run(self, run_key: str) -> None:
        """The run has ended: so do its servers."""
        await self.pool.close_run(run_key)

    async def aclose(self) -> None:
        """The worker ends: so do all servers."""
        await self.pool.aclose()
