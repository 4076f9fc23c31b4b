"""MCP servers of a contract: where their tools come from, and what the servers may use."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from .model import Strict

SERVER_ID_LENGTH = 24
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<![_-])\Z")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")  # RFC 9110, 5.6.2
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "accept", "connection", "transfer-encoding"}
)

NonEmpty = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


def _server_id(value: str) -> str:
    if not _ID.match(value):
        raise ValueError(
            "must be letters, digits, '-' and single '_', and begin and end with a letter or digit: "
            "it becomes part of the names of the server's tools (mcp__ID__TOOL)"
        )
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.match(value):
        raise ValueError("must be a variable's name: letters, digits and '_'")
    return value


def _reference(value: str) -> str:
    scheme, _, name = value.partition(":")
    if scheme != "env" or not _VARIABLE.match(name):
        raise ValueError(
            "must name a variable of the worker's environment, like env:GITHUB_TOKEN; a value "
            "itself never belongs in a contract"
        )
    return value


def _header(value: str) -> str:
    if not _HEADER.match(value):
        raise ValueError("is no name of an HTTP header")
    if value.lower() in _OWN_HEADERS or value.lower().startswith("mcp-"):
        raise ValueError("is set by the client itself")
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an absolute URL that begins with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must hold no user name or password; give a header by reference instead")
    if parts.fragment:
        raise ValueError("must have no fragment")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError("must be an absolute path of the worker's host, without '..'")
    return value


ServerId = Annotated[
    str, StringConstraints(max_length=SERVER_ID_LENGTH), AfterValidator(_server_id)
]
Variable = Annotated[str, AfterValidator(_variable)]
Reference = Annotated[str, AfterValidator(_reference)]
HeaderName = Annotated[str, AfterValidator(_header)]
HostPath = Annotated[str, AfterValidator(_absolute)]


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
    questions: Literal["decline", "ask"] = "decline"
    """What a server's question to the user (elicitation) gets: no, or a human's answer."""


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
    url: Annotated[NonEmpty, AfterValidator(_url)]
    headers: dict[HeaderName, Reference] = {}
    """Headers sent with every request, each value by reference to a variable of the worker."""


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
