"""MCP servers of a contract: where their tools come from, and what the servers may use."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from .mcp_auth import McpAuth
from .mcp_fields import HeaderName, HostPath, HttpUrl, NonEmpty, Reference, Variable
from .model import Strict

SERVER_ID_LENGTH = 24
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<![_-])\Z")


def _server_id(value: str) -> str:
    if not _ID.match(value):
        raise ValueError(
            "must be letters, digits, '-' and single '_', and begin and end with a letter or digit: "
            "it becomes part of the names of the server's tools (mcp__ID__TOOL)"
        )
    return value


ServerId = Annotated[
    str, StringConstraints(max_length=SERVER_ID_LENGTH), AfterValidator(_server_id)
]

QuestionsAre = Literal["decline", "defaults", "ask"]


class _Server(Strict):
    id: ServerId
    tools: tuple[NonEmpty, ...] = ("*",)
    """Which of the server's tools are offered: its own names for them, `*` and `?` as in a shell."""
    connect_seconds: int = Field(default=30, ge=1, le=600)
    """For the start of the server, the connection, and the agreement on a protocol version."""
    list_seconds: int = Field(default=30, ge=1, le=600)
    """For the whole list of tools, all pages together."""
    call_seconds: int = Field(default=300, ge=1, le=86_400)
    """For one call."""
    questions: QuestionsAre = "decline"
    """What a server's question to the user (elicitation) gets: a no, the defaults that the question
    itself proposes (a no where it has none), or a human's answer."""


class StdioServer(_Server):
    """A program that speaks MCP on its standard streams. It runs in the run's sandbox, with the run's
    egress rules, and starts only if the policy's `exec` allows its command."""

    kind: Literal["stdio"] = "stdio"
    command: NonEmpty
    args: tuple[str, ...] = ()
    env: dict[Variable, Reference] = {}
    """Variables it gets besides the basic ones, each by reference to one of the worker's, which the
    worker's IO_HARNESS_CREDENTIALS must list."""
    workspace: Literal["none", "read", "write"] = "read"
    """What it may do with the run's working copy, which is its current directory."""
    read: tuple[HostPath, ...] = ()
    """Further directories that it may read: where it is installed, for one."""
    write: tuple[HostPath, ...] = ()
    """Further directories that it may write. What it writes there is not undone by a retry."""


class HttpServer(_Server):
    """A server at a URL (streamable HTTP). It is dialled only if the policy's `net` allows the host."""

    kind: Literal["http"] = "http"
    url: HttpUrl
    headers: dict[HeaderName, Reference] = {}
    """Headers sent with every request, each value by reference to a variable of the worker."""
    auth: McpAuth | None = None
    """How the server learns who asks, where it wants OAuth."""

    @model_validator(mode="after")
    def _one_authorization(self) -> "HttpServer":
        if self.auth is not None and any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("give headers.Authorization or auth, not both")
        return self


McpServer = Annotated[StdioServer | HttpServer, Field(discriminator="kind")]


def check_ids(servers: tuple[StdioServer | HttpServer, ...]) -> None:
    """Raises ValueError if two servers' ids differ in nothing, or in the case of letters only."""
    seen: dict[str, str] = {}
    for server in servers:
        if other := seen.get(server.id.lower()):
            raise ValueError(
                f"mcp_servers: two servers are named {other!r} and {server.id!r}; rename one, since "
                "the id is what tells their tools apart"
            )
        seen[server.id.lower()] = server.id
