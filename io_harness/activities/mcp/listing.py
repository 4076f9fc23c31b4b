"""The activity that connects to a run's servers and lists their tools."""

import asyncio
from typing import TYPE_CHECKING

from temporalio import activity

from io_harness.activities.failure import failure, told
from io_harness.activities.gate import ApprovalNeeded, Gate, Refused
from io_harness.activities.heartbeat import heartbeating
from io_harness.activities.network import RunNetwork
from io_harness.activities.run_reader import RunReader
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy
from io_harness.activities.workspace_policy import RunPolicies
from io_harness.sandbox.egress import BadHost
from io_harness.workflows.mcp import ListMcpToolsInput, McpListing, McpTools, McpUnchanged
from io_harness.workflows.payloads import ApprovalRequest, NeedsApproval

from .errors import McpFailure, MissingCredential
from .helpers import helper_tools
from .opening import Place, require_start
from .pool import Pool

if TYPE_CHECKING:
    from .catalogue import Listed, Server


class McpActivities:
    """One per worker."""

    def __init__(
        self,
        settings: Settings,
        reader: RunReader,
        store: SnapshotStore,
        pool: Pool,
        network: RunNetwork,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._store = store
        self._policies = RunPolicies(store)
        self._pool = pool
        self._network = network

    @activity.defn(name="list_mcp_tools")
    async def list_mcp_tools(self, given: ListMcpToolsInput) -> McpListing:
        """Start or dial every server that isn't connected, and list what the contract wants of them.

        Raises:
            ApplicationError: McpServerRefused, MissingCredential, McpServerFailed, McpToolNotFound.
        """
        async with heartbeating():
            with told():
                contract = await self._reader.contract(given.run)
                policy = await self._policies.policy(contract, given.run.key)
                policy = policy.remember(*given.remembered)
                gate = Gate(policy, given.grants, approval=contract.approval)
                async with open_copy(
                    self._store,
                    self._settings,
                    given.run.key,
                    contract,
                    given.base,
                    access="read",
                    network=lambda: self._network.command(given.run.key, gate),
                ) as copy:
                    place = Place(given.run.key, contract, policy, gate, copy.root)
                    if requests := _asks(contract.mcp_servers, place):
                        return NeedsApproval(requests=requests)
                    return await self._list(given, contract.mcp_servers, place)

    async def _list(
        self, given: ListMcpToolsInput, servers: tuple["Server", ...], place: Place
    ) -> McpListing:
        from .catalogue import fitting, offer

        first = not given.run.mcp_digest
        results = await asyncio.gather(
            *(self._pool.listed(server, place) for server in servers), return_exceptions=True
        )
        failed = [
            (server, result)
            for server, result in zip(servers, results, strict=True)
            if isinstance(result, BaseException)
        ]
        for _, error in failed:
            if not isinstance(error, McpFailure):
                raise error
        if failed:
            if first:
                await self._pool.close_run(given.run.key)
            code = (
                "MissingCredential"
                if isinstance(failed[0][1], MissingCredential)
                else "McpServerFailed"
            )
            lines = [
                f"the MCP server {server.id} can't be used: {error}" for server, error in failed
            ]
            raise failure(code, "\n".join(lines))
        listed = [result for result in results if not isinstance(result, BaseException)]
        if first:
            _require_matches(servers, listed)
        sources, tools = fitting(
            offer(server, found) for server, found in zip(servers, listed, strict=True)
        )
        found = McpTools(
            servers=sources, tools=(*tools, *helper_tools(zip(servers, listed, strict=True)))
        )
        return McpUnchanged() if found.digest == given.run.mcp_digest else found


def _asks(servers: tuple["Server", ...], place: Place) -> tuple[ApprovalRequest, ...]:
    """What a human must be asked before the servers are started.

    Raises:
        ApplicationError: McpServerRefused, where the policy denies one.
    """
    requests: list[ApprovalRequest] = []
    for server in servers:
        try:
            require_start(server, place.gate, place.root)
        except ApprovalNeeded as needed:
            requests.append(needed.request)
        except BadHost as error:
            raise failure(
                "McpServerRefused",
                f"the address of the MCP server {server.id} is of no use: {error}",
            ) from error
        except Refused as refused:
            raise failure(
                "McpServerRefused",
                f"the policy doesn't let the MCP server {server.id} be used: {refused}; allow "
                f"{refused.act} of {refused.target!r} in a layer of the policy, or take the server "
                "out of mcp_servers",
            ) from refused
    return tuple(requests)


def _require_matches(servers: tuple["Server", ...], listed: "list[Listed]") -> None:
    from .catalogue import unmatched
    from .text import one_line

    for index, (server, found) in enumerate(zip(servers, listed, strict=True)):
        if missing := unmatched(server, found):
            names = one_line(", ".join(sorted(tool.name for tool in found.tools)), 1_000)
            raise failure(
                "McpToolNotFound",
                f"mcp_servers.{index}.tools: {server.id} has no tool {missing[0]!r}; it has: {names}",
            )
