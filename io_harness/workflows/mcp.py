"""The tools of MCP servers, as one activity found them and history keeps them."""

import hashlib
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .model import Record
from .payloads import Effect, Grant, NeedsApproval, RunScope
from .rules import Rule

PREFIX = "mcp__"
"""Names of servers' tools begin with it; no tool of the harness does."""
HELPERS = "mcp_"
"""Names of the tools that read servers' resources and prompts begin with it."""
LIST_BYTES = 256 * 1024
"""Ceiling of a whole recorded list: it is in history once per change, and in every request."""


class McpTool(Record):
    """One tool as the model is offered it."""

    name: str
    """mcp__<server>__<tool>, or one of the harness's own for resources and prompts."""
    server: str
    """Id in the contract; empty for the harness's own."""
    tool: str
    """The server's own name of it."""
    description: str
    """What the server says, cut to its limit. Untrusted."""
    input_schema: dict[str, JsonValue]
    effect: Effect
    """How a lost call is dealt with. It follows the server's hints, and permits nothing."""
    digest: str
    """Of everything the server declares of the tool, uncut. A call is made only while it holds."""


class McpSource(Record):
    """One connected server."""

    id: str
    protocol: str
    """Version of the protocol that was agreed on."""
    software: str
    """Name and version that it gives itself. Untrusted."""
    refresh_seconds: float | None = None
    """How long its list is good for, where it says."""
    notes: tuple[str, ...] = ()
    """What was left out of its list, and why."""


class McpTools(Record):
    """The whole list: the same bytes on every worker and in every replay."""

    kind: Literal["listed"] = "listed"
    servers: tuple[McpSource, ...] = ()
    tools: tuple[McpTool, ...] = ()

    @property
    def digest(self) -> str:
        """What is at its default is left out: see the transcript's digests."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()

    @property
    def prompt_tokens(self) -> int:
        """Upper bound of what the list costs in a request: its bytes."""
        return sum(len(tool.model_dump_json().encode()) for tool in self.tools)

    def find(self, name: str) -> McpTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


class McpUnchanged(Record):
    """The list is the one already known."""

    kind: Literal["unchanged"] = "unchanged"


class ListMcpToolsInput(Record):
    run: RunScope
    """Its `mcp_digest` names the list that is already in history; empty at the start of the run."""
    base: str
    """Snapshot that servers with access to the workspace see."""
    grants: tuple[Grant, ...] = ()
    remembered: tuple[Rule, ...] = ()


McpListing = Annotated[McpTools | McpUnchanged | NeedsApproval, Field(discriminator="kind")]


class McpState(Record):
    """What a run keeps of its MCP servers."""

    tools: McpTools | None = None
    """None before the first listing."""
    grants: tuple[Grant, ...] = ()
    """A human's yes to the start of servers."""
    listed_at: float = 0
    stale: bool = False
    """A server said that its list changed."""

    def due(self, now: float) -> bool:
        """Whether the list is to be asked for before the next turn."""
        if self.tools is None or self.stale:
            return True
        limits = [s.refresh_seconds for s in self.tools.servers if s.refresh_seconds is not None]
        return bool(limits) and now - self.listed_at >= min(limits)

    def effect_of(self, name: str) -> Effect | None:
        found = self.tools.find(name) if self.tools else None
        return found.effect if found else None
