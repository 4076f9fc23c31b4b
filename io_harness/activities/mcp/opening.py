"""Whether a server may be started or dialled, and how."""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import urlsplit

from io_harness import sandbox
from io_harness.activities.egress import GateJudge
from io_harness.activities.gate import CommandLine, Gate
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.activities.tools.process import interpreter_roots
from io_harness.sandbox.egress import Question, Session, Target, canonical_host
from io_harness.sandbox.network import through_proxy
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.mcp_contract import HttpServer, StdioServer
from io_harness.workflows.policy import Policy, may_reach_network

from .secrets import resolve

if TYPE_CHECKING:
    from .catalogue import Server
    from .link import Link

_MIB = 1024 * 1024
_STDERR_BYTES = 64 * 1024
_LIFETIME_FACTOR = 60
"""A server may use so many times the CPU time of one command."""


@dataclass(frozen=True)
class Place:
    """The run for which a connection is made, on this worker."""

    run_key: str
    contract: TaskContract
    policy: Policy
    gate: Gate
    root: Path
    """The run's working copy."""


def require_start(server: "Server", gate: Gate, root: Path) -> None:
    """Return if the policy, and the humans asked so far, let the server be started or dialled.

    Raises:
        Refused: the policy denies it.
        ApprovalNeeded: a human must be asked first.
    """
    match server:
        case StdioServer():
            gate.require(
                "exec",
                CommandLine((server.command, *server.args), root, home=_home()),
                tool=f"mcp {server.id}",
                arguments={},
                preview=start_preview(server),
                preview_kind="text",
            )
        case HttpServer():
            for target, what in _dialled(server).items():
                gate.require(
                    "net",
                    str(target),
                    tool=f"mcp {server.id}",
                    arguments={},
                    preview=what,
                    preview_kind="text",
                )
        case _:
            assert_never(server)


def start_preview(server: StdioServer) -> str:
    """What a human reads before the server is started."""
    lines = [
        f"Start the MCP server {server.id}, in the sandbox, for as long as the run needs it:",
        f"  {shlex.join((server.command, *server.args))}",
        f"Access to the workspace: {server.workspace}.",
    ]
    if server.read:
        lines.append(f"May also read: {', '.join(server.read)}.")
    if server.write:
        lines.append(f"May also write: {', '.join(server.write)}.")
    if server.env:
        given = ", ".join(f"{name} ({reference})" for name, reference in sorted(server.env.items()))
        lines.append(f"Is given: {given}.")
    return "\n".join(lines)


def _dialled(server: HttpServer) -> dict[Target, str]:
    """What the contract itself names to be dialled, and what for."""
    what = {target_of(server.url): f"Connect to the MCP server {server.id} at {server.url}."}
    if server.auth is not None and (issuer := server.auth.issuer) is not None:
        target = target_of(issuer)
        what.setdefault(target, f"Get tokens for the MCP server {server.id} from {issuer}.")
    return what


def target_of(url: str) -> Target:
    """The host and port that are dialled.

    Raises:
        BadHost: the URL's host is none that all programs read alike.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Target(canonical_host(parts.hostname or ""), port)


@asynccontextmanager
async def open_streams(
    server: "Server", place: Place, settings: Settings, network: RunNetwork, link: "Link"
) -> AsyncIterator[Any]:
    """The server's messages, in and out.

    Raises:
        MissingCredential, NotStarted
    """
    session = _egress(server, place, network)
    match server:
        case StdioServer():
            from .stdio import stdio_link

            reaches = may_reach_network(place.policy)
            net = through_proxy(network.proxy, session) if reaches else sandbox.NetNone()
            given = resolve(server.env, server, settings)
            link.hide(*given.values())
            plan = _plan(server, place, settings, given, net)
            async with stdio_link(plan, link) as streams:
                yield streams
        case HttpServer():
            from mcp.client.streamable_http import streamable_http_client

            from .http import http_client
            from .link import MESSAGE_BYTES
            from .oauth.choice import proof_for

            headers = resolve(server.headers, server, settings)
            link.hide(*headers.values())
            proof = proof_for(server, settings, link)
            seconds = float(server.connect_seconds)
            resolver = network.proxy.resolver
            async with (
                http_client(session, resolver, headers, proof, seconds, link) as client,
                streamable_http_client(
                    server.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
                ) as streams,
            ):
                yield streams
        case _:
            assert_never(server)


def _egress(server: "Server", place: Place, network: RunNetwork) -> Session:
    """What the server may reach. Of what the policy asks about, a human was asked about the hosts that
    the contract itself names, before it came here; no other question is answered with yes."""
    own = _dialled(server) if isinstance(server, HttpServer) else {}

    async def answer(question: Question) -> bool:
        return question.target in own

    return network.session(place.run_key, GateJudge(place.gate), answer)


def _plan(
    server: StdioServer,
    place: Place,
    settings: Settings,
    given: dict[str, str],
    net: sandbox.Net,
) -> sandbox.Plan:
    limits = place.contract.sandbox.limits
    root = place.root
    if server.workspace == "none":
        root = settings.data_dir / "runs" / place.run_key / f"mcp-{server.id}"
        root.mkdir(parents=True, exist_ok=True)
    return sandbox.Plan(
        argv=(server.command, *server.args),
        cwd=root,
        workspace=root,
        mode="read_only" if server.workspace == "read" else "workspace_write",
        read_only_roots=(*interpreter_roots(), *map(Path, server.read)),
        writable_roots=tuple(map(Path, server.write)),
        protected=sandbox.protected_in(root) if server.workspace == "write" else (),
        env=sandbox.base_env() | given,
        limits=sandbox.Limits(
            cpu_seconds=limits.cpu_seconds * _LIFETIME_FACTOR,
            memory_bytes=limits.memory_mb * _MIB,
            processes=limits.processes,
            open_files=limits.open_files,
            file_bytes=limits.file_mb * _MIB,
            tmp_bytes=limits.tmp_mb * _MIB,
            output_bytes=_STDERR_BYTES,
        ),
        net=net,
        merge_streams=False,
    )


def _home() -> str:
    return sandbox.base_env().get("HOME", "/")
