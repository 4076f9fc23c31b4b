"""From what a server declares to the tools that the model is offered."""

import fnmatch
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_types import Tool, ToolAnnotations
from pydantic import JsonValue

from io_harness.activities.schemas import BadSchema, check_schema
from io_harness.workflows.mcp import LIST_BYTES, McpSource, McpTool
from io_harness.workflows.mcp_contract import HttpServer, StdioServer
from io_harness.workflows.payloads import Effect

from .naming import offered_names
from .text import one_line, plain

MAX_TOOLS = 128
"""Of one server."""
NAME_LENGTH = 128
"""Of a tool's own name: the specification's own limit (2025-11-25, Tools)."""
DESCRIPTION_LENGTH = 4_000
SCHEMA_BYTES = 16 * 1024
_NOTES = 20
_DIGEST = 12

Server = StdioServer | HttpServer


@dataclass(frozen=True)
class Listed:
    """What a connected server declares."""

    protocol: str
    software: str
    tools: tuple[Tool, ...]
    resources: bool = False
    prompts: bool = False
    refresh_seconds: float | None = None
    cut: str = ""
    """Why the list is not whole; empty where it is."""


@dataclass
class _Offer:
    server: Server
    kept: list[McpTool] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, tool: str, why: str) -> None:
        if len(self.notes) < _NOTES:
            self.notes.append(f"{one_line(tool, 100)!r} left out: {why}")
        elif len(self.notes) == _NOTES:
            self.notes.append("... and more")


def offer(server: Server, listed: Listed) -> tuple[McpSource, tuple[McpTool, ...]]:
    """The tools of one server that the contract wants, by name, and what was left out."""
    offer = _Offer(server)
    if listed.cut:
        offer.notes.append(listed.cut)
    wanted = [tool for tool in listed.tools if _wanted(server, tool.name)]
    first: dict[str, Tool] = {}
    for tool in wanted:
        if tool.name not in first:
            first[tool.name] = tool
        elif digest_of(tool) != digest_of(first[tool.name]):
            offer.leave_out(tool.name, "a second tool of that name, with another declaration")
    names = offered_names(server.id, first)
    for name in sorted(first):
        if name not in names:
            offer.leave_out(name, "its name can't be told from another tool's")
    for name, offered in sorted(names.items(), key=lambda pair: pair[1]):
        if len(offer.kept) == MAX_TOOLS:
            offer.leave_out(name, f"a server may offer {MAX_TOOLS} tools")
            continue
        _add(offer, offered, first[name])
    source = McpSource(
        id=server.id,
        protocol=listed.protocol,
        software=one_line(listed.software, 100),
        refresh_seconds=listed.refresh_seconds,
        notes=tuple(offer.notes),
    )
    return source, tuple(offer.kept)


def unmatched(server: Server, listed: Listed) -> tuple[str, ...]:
    """Patterns of the contract that match none of the server's tools."""
    names = [tool.name for tool in listed.tools]
    return tuple(
        pattern
        for pattern in server.tools
        if pattern != "*" and not any(fnmatch.fnmatchcase(name, pattern) for name in names)
    )


def fitting(
    offers: Iterable[tuple[McpSource, tuple[McpTool, ...]]],
) -> tuple[tuple[McpSource, ...], tuple[McpTool, ...]]:
    """As much of all servers' offers, in order, as history takes."""
    sources: list[McpSource] = []
    tools: list[McpTool] = []
    size = 0
    for source, offered in offers:
        left_out = 0
        for tool in offered:
            own = len(tool.model_dump_json().encode())
            if size + own > LIST_BYTES:
                left_out += 1
                continue
            size += own
            tools.append(tool)
        if left_out:
            note = (
                f"{left_out} tools left out: the list of all servers is over {LIST_BYTES:,} bytes"
            )
            source = source.model_copy(update={"notes": (*source.notes, note)})
        sources.append(source)
    return tuple(sources), tuple(tools)


def digest_of(tool: Tool) -> str:
    """Of everything that the server declares of a tool."""
    declared = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    encoded = json.dumps(declared, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(encoded.encode()).hexdigest()[:_DIGEST]


def effect_of(hints: ToolAnnotations | None, server: Server) -> Effect:
    """How a lost call is dealt with. Hints are not trusted with more than that: a tool that says that
    it only reads, of a server that may write to the workspace, is treated as one that writes."""
    if hints is not None and hints.read_only_hint:
        writes = isinstance(server, StdioServer) and server.workspace == "write"
        return "write" if writes else "read"
    if hints is not None and hints.idempotent_hint:
        return "write"
    return "unrepeatable"


def _wanted(server: Server, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in server.tools)


def _add(offer: _Offer, name: str, tool: Tool) -> None:
    if len(tool.name) > NAME_LENGTH:
        offer.leave_out(tool.name, f"its name has {len(tool.name):,} characters")
        return
    schema = _object_schema(tool.input_schema)
    if schema is None:
        offer.leave_out(tool.name, "its arguments are no JSON object")
        return
    size = len(json.dumps(schema).encode("utf-8", "surrogatepass"))
    if size > SCHEMA_BYTES:
        offer.leave_out(tool.name, f"the schema of its arguments has {size:,} bytes")
        return
    if refs := foreign_references(schema):
        offer.leave_out(tool.name, f"its schema refers to {one_line(refs[0], 100)!r}, not fetched")
        return
    try:
        check_schema(schema)
    except BadSchema as error:
        offer.leave_out(tool.name, f"the schema of its arguments is {error}")
        return
    offer.kept.append(
        McpTool(
            name=name,
            server=offer.server.id,
            tool=tool.name,
            description=plain(tool.description or tool.title or "", DESCRIPTION_LENGTH),
            input_schema=schema,
            effect=effect_of(tool.annotations, offer.server),
            digest=digest_of(tool),
        )
    )


def _object_schema(schema: dict[str, Any]) -> dict[str, JsonValue] | None:
    if schema.get("type", "object") != "object":
        return None
    return {"type": "object", **schema}


def foreign_references(schema: object) -> Sequence[str]:
    """References that lead out of the schema."""
    found: list[str] = []
    pending = [schema]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            for key in ("$ref", "$dynamicRef"):
                target = here.get(key)
                if isinstance(target, str) and not target.startswith("#"):
                    found.append(target)
            pending += here.values()
        elif isinstance(here, list):
            pending += here
    return sorted(found)
