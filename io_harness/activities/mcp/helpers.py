"""The harness's own tools for what servers offer besides tools: resources and prompts."""

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from io_harness.activities.schemas import Mismatch, check_value
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.context import ToolContext, Want
from io_harness.activities.tools.errors import InvalidArguments
from io_harness.workflows.mcp import HELPERS, McpTool
from io_harness.workflows.messages import Observation
from io_harness.workflows.policy import Policy

from .calls import McpServerError, permitted
from .errors import McpFailure
from .pool import Pool
from .text import one_line, plain

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from .catalogue import Listed, Server
    from .connection import Connection
    from .render import Rendering

LIST_RESOURCES = f"{HELPERS}list_resources"
READ_RESOURCE = f"{HELPERS}read_resource"
LIST_PROMPTS = f"{HELPERS}list_prompts"
GET_PROMPT = f"{HELPERS}get_prompt"

_MAX_LISTED = 200
_LINE = 300


def helper_tools(listed: Iterable[tuple["Server", "Listed"]]) -> tuple[McpTool, ...]:
    """Those that some server has a use for."""
    both = list(listed)
    resources = [server.id for server, found in both if found.resources]
    prompts = [server.id for server, found in both if found.prompts]
    tools: list[McpTool] = []
    if resources:
        uri: dict[str, JsonValue] = {"uri": {"type": "string"}}
        tools += (
            _spec(
                LIST_RESOURCES, "resources/list", "List the resources of an MCP server.", resources
            ),
            _spec(
                READ_RESOURCE, "resources/read", "Read a resource of an MCP server.", resources, uri
            ),
        )
    if prompts:
        more: dict[str, JsonValue] = {
            "name": {"type": "string"},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        }
        tools += (
            _spec(LIST_PROMPTS, "prompts/list", "List the prompts of an MCP server.", prompts),
            _spec(GET_PROMPT, "prompts/get", "Get a prompt of an MCP server.", prompts, more),
        )
    return tuple(tools)


def _spec(
    name: str,
    method: str,
    description: str,
    servers: list[str],
    more: dict[str, JsonValue] | None = None,
) -> McpTool:
    properties: dict[str, JsonValue] = {"server": {"enum": [*servers]}, **(more or {})}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key != "arguments"],
        "additionalProperties": False,
    }
    return McpTool(
        name=name, server="", tool=method, description=description, input_schema=schema,
        effect="read", digest="",
    )  # fmt: skip


class McpHelperTool(AnyTool):
    """One of them."""

    effect = "read"

    def __init__(
        self, spec: McpTool, servers: tuple["Server", ...], policy: Policy, pool: Pool
    ) -> None:
        self.name = spec.name
        self.description = spec.description
        self._spec = spec
        self._servers = {server.id: server for server in servers}
        self._policy = policy
        self._pool = pool

    def input_schema(self) -> dict[str, JsonValue]:
        return self._spec.input_schema

    async def call(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> Observation:
        """Ask the gate by the method's name and its object, and the server then."""
        try:
            check_value(self._spec.input_schema, arguments)
        except Mismatch as error:
            raise InvalidArguments(f"{self.name}: {error}") from None
        server = self._servers[str(arguments["server"])]
        about = str(arguments.get("uri") or arguments.get("name") or "")
        place = permitted(server, self._policy, ctx)
        words = [server.id, self._spec.tool, *([about] if about else [])]
        shown = f"Ask the MCP server {server.id} for {self._spec.tool} {one_line(about, _LINE)}"
        ctx.require(Want("exec", f"<mcp> {shlex.join(words)}", shown.rstrip(), "text"))
        try:
            connection = await self._pool.connection(server, place)
            return await self._ask(connection, server, arguments, ctx)
        except McpFailure as error:
            raise McpServerError(f"{server.id}: {error}") from error

    async def _ask(
        self,
        connection: "Connection",
        server: "Server",
        arguments: dict[str, JsonValue],
        ctx: ToolContext,
    ) -> Observation:
        from .render import Rendering

        session = await connection.session()
        rendering = Rendering(ctx.blobs)
        what = f"its answer to {self._spec.tool}"
        match self.name:
            case "mcp_list_resources":
                lines = await connection.ask(_resources(session), server.list_seconds, what)
                rendering.lines += lines
            case "mcp_list_prompts":
                lines = await connection.ask(_prompts(session), server.list_seconds, what)
                rendering.lines += lines
            case "mcp_read_resource":
                read = session.read_resource(str(arguments["uri"]))
                found = await connection.ask(read, server.call_seconds, what)
                for contents in found.contents:
                    await rendering.resource(contents)
            case _:
                await self._prompt(connection, session, server, arguments, rendering)
        return rendering.observation(ctx.outputs)

    async def _prompt(
        self,
        connection: "Connection",
        session: "ClientSession",
        server: "Server",
        arguments: dict[str, JsonValue],
        rendering: "Rendering",
    ) -> None:
        given: Any = arguments.get("arguments") or {}
        asked = session.get_prompt(str(arguments["name"]), given)
        found = await connection.ask(asked, server.call_seconds, "the prompt")
        for message in found.messages:
            rendering.lines.append(f"[{message.role}]")
            await rendering.content([message.content])


async def _resources(session: "ClientSession") -> list[str]:
    from mcp.shared.exceptions import MCPError
    from mcp_types import PaginatedRequestParams

    lines: list[str] = []
    cursor: str | None = None
    while len(lines) < _MAX_LISTED:
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        page = await session.list_resources(params=params)
        lines += [_line(r.uri, r.name, r.description) for r in page.resources]
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    try:
        templates = await session.list_resource_templates()
    except MCPError:  # not every server has them
        return lines[:_MAX_LISTED]
    lines += [_line(t.uri_template, t.name, t.description) for t in templates.resource_templates]
    return lines[:_MAX_LISTED]


async def _prompts(session: "ClientSession") -> list[str]:
    page = await session.list_prompts()
    lines: list[str] = []
    for prompt in page.prompts[:_MAX_LISTED]:
        names = ", ".join(
            a.name + ("" if a.required else " (may be left out)") for a in prompt.arguments or ()
        )
        lines.append(
            _line(prompt.name, f"arguments: {plain(names, _LINE) or 'none'}", prompt.description)
        )
    return lines


def _line(first: str, second: str, description: str | None) -> str:
    about = f" - {one_line(description, _LINE)}" if description else ""
    return f"{one_line(first, _LINE)}: {one_line(second, _LINE)}{about}"
