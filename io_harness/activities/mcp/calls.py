"""A server's tool as one of the harness's own: the gate, the connection, the answer."""

import json
import shlex
from textwrap import fill
from typing import TYPE_CHECKING

from pydantic import JsonValue

from io_harness.activities.gate import ApprovalNeeded
from io_harness.activities.schemas import BadSchema, Mismatch, check_value, without_idle_nulls
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.context import AsksNeeded, ToolContext, Want
from io_harness.activities.tools.errors import InvalidArguments, ToolError
from io_harness.workflows.mcp import McpTool
from io_harness.workflows.messages import Observation
from io_harness.workflows.policy import Policy

from .errors import (
    ConnectionEnded,
    McpFailure,
    MissingCredential,
    NoAnswer,
    NotStarted,
    SessionExpired,
)
from .opening import Place, require_start
from .pool import Pool
from .text import one_line, plain

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from .catalogue import Server
    from .connection import Connection
    from .questions import Questions

_PREVIEW_ARGUMENTS = 8_000
_PREVIEW_DESCRIPTION = 1_000
_WIDTH = 64
ANEW = (
    "(The server was connected to anew for this call, on this worker. What it remembered of earlier "
    "calls of this run, if there were any, is gone.)\n"
)
_UNKNOWN = "It may or may not have had its effect."


class McpServerError(ToolError):
    """The server did not give a result."""

    code = "mcp_error"


class ToolChanged(ToolError):
    """The server's declaration of the tool is no longer the one that the model was shown."""

    code = "tool_changed"


class McpServerTool(AnyTool):
    """One recorded tool of one server."""

    def __init__(self, spec: McpTool, server: "Server", policy: Policy, pool: Pool) -> None:
        self.name = spec.name
        self.description = spec.description
        self.effect = spec.effect
        self._spec = spec
        self._server = server
        self._policy = policy
        self._pool = pool

    def input_schema(self) -> dict[str, JsonValue]:
        return self._spec.input_schema

    async def call(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> Observation:
        """Check the arguments, ask the gate, and call the tool as it was recorded."""
        arguments = without_idle_nulls(self._spec.input_schema, arguments)
        try:
            check_value(self._spec.input_schema, arguments)
        except (Mismatch, BadSchema) as error:
            raise InvalidArguments(f"{self.name}: {error}") from None
        place = permitted(self._server, self._policy, ctx)
        ctx.require(Want("exec", self._target(), self._preview(arguments), "text"))
        try:
            return await self._call(arguments, place, ctx)
        except (NotStarted, MissingCredential) as error:
            raise McpServerError(
                f"{self._server.id}: it was not called, since there is no connection: {error}"
            ) from error
        except ConnectionEnded as error:
            raise McpServerError(
                f"{self._server.id}: the connection ended during the call ({error}). {_UNKNOWN}"
            ) from error
        except NoAnswer as error:
            raise McpServerError(f"{self._server.id}: {error}. {_UNKNOWN}") from error
        except McpFailure as error:
            raise McpServerError(f"{self._server.id}: {error}") from error

    def _target(self) -> str:
        """What the policy is asked about. A rule that a human lets be remembered ends in the digest,
        and so holds for this declaration of the tool only."""
        words = (self._spec.server, self._spec.tool, self._spec.digest)
        return f"<mcp> {shlex.join(words)}"

    def _preview(self, arguments: dict[str, JsonValue]) -> str:
        shown = plain(json.dumps(arguments, indent=1, ensure_ascii=False), _PREVIEW_ARGUMENTS)
        said = one_line(self._spec.description, _PREVIEW_DESCRIPTION)
        # Wrapped, so that nothing is beyond the edge of a page.
        called = f"Call the tool {self._spec.tool!r} of the MCP server {self._spec.server} with:"
        return (
            f"{fill(called, _WIDTH)}\n{shown}\n\n"
            f"The server says of it (declaration {self._spec.digest}):\n"
            f"{fill(said or 'nothing', _WIDTH)}"
        )

    async def _call(
        self, arguments: dict[str, JsonValue], place: Place, ctx: ToolContext
    ) -> Observation:
        from .questions import Questions
        from .render import render_result

        connection = await self._pool.connection(self._server, place)
        are = self._server.questions
        questions = Questions(
            server=self._server.id,
            tool=self._spec.tool,
            arguments=arguments,
            answer_to=ctx.gate.answer_to,
            are="decline" if are == "ask" and not ctx.gate.can_ask else are,
        )
        try:
            result = await self._once(connection, arguments, questions, ctx)
        except SessionExpired:
            connection = await self._pool.again(self._server, place)
            result = await self._once(connection, arguments, questions, ctx)
        if questions.open:
            raise AsksNeeded(tuple(questions.open))
        live = connection.live(self._spec.tool)
        schema = live.output_schema if live else None
        observation = await render_result(result, schema, ctx.blobs, ctx.outputs)
        if connection.known or connection.stateless:
            return observation
        connection.known = True
        return observation.model_copy(update={"text": ANEW + observation.text})

    async def _once(
        self,
        connection: "Connection",
        arguments: dict[str, JsonValue],
        questions: "Questions",
        ctx: ToolContext,
    ) -> "CallToolResult":
        from .catalogue import digest_of

        await connection.listed()
        live = connection.live(self._spec.tool)
        if live is None or digest_of(live) != self._spec.digest:
            connection.stale = True
            what = "is no longer offered" if live is None else "is declared in another way now"
            raise ToolChanged(
                f"{self._spec.tool} of {self._server.id} {what}; it was not called. The list of "
                "tools is read anew before your next turn"
            )

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            of = f"/{total:g}" if total is not None else ""
            ctx.progress(one_line(f"{progress:g}{of} {message or ''}", 200))

        return await connection.call(self._spec.tool, arguments, questions, progressed)


def permitted(server: "Server", policy: Policy, ctx: ToolContext) -> Place:
    """The place for a connection that the gate lets be made.

    Raises:
        Refused: the policy denies it.
        AsksNeeded: a human must be asked first.
    """
    try:
        require_start(server, ctx.gate, ctx.root)
    except ApprovalNeeded as needed:
        raise AsksNeeded((needed.request,)) from None
    return Place(ctx.run_key, ctx.contract, policy, ctx.gate, ctx.root)
