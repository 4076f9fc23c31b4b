"""Servers at a URL of the loopback: of the newest revision, of an older one, and of none."""

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from io_harness.workflows.mcp_contract import HttpServer

from .npm_servers import npm_servers


def http_server(url: str, **more: object) -> HttpServer:
    return HttpServer.model_validate(
        {"id": "web", "url": url, "connect_seconds": 15, "call_seconds": 60, **more}
    )


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[int]:
    """Serve an application on a free port of the loopback."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_level="error",
        lifespan="on",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.02)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


def newest() -> MCPServer:
    """A stateless server whose list of tools changes when it is told to."""
    server = MCPServer("newest", version="1.0")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Offer one more tool."""

        def late() -> str:
            """Came later."""
            return "late"

        server.add_tool(late)
        await ctx.notify_tools_changed()
        return "grown"

    def seats(place: str, ctx: Context, declared: dict[str, object]) -> InputRequiredResult | str:
        answers = ctx.input_responses or {}
        if (answer := answers.get("seats")) is None:
            wanted = {"type": "object", "properties": {"seats": declared}, "required": ["seats"]}
            params = ElicitRequestFormParams(message="How many?", requested_schema=wanted)
            return InputRequiredResult(
                input_requests={"seats": ElicitRequest(params=params)}, request_state="s1"
            )
        assert isinstance(answer, ElicitResult)
        return f"{place}: {answer.action} {answer.content}"

    @server.tool()
    async def book(place: str, ctx: Context) -> InputRequiredResult | str:
        """Book a table, having asked for how many."""
        return seats(place, ctx, {"type": "integer"})

    @server.tool()
    async def dine(place: str, ctx: Context) -> InputRequiredResult | str:
        """Book a table, for two unless asked otherwise."""
        return seats(place, ctx, {"type": "integer", "default": 2})

    @server.resource("notes://today", name="today", description="What is up")
    def today() -> str:
        return "the note of today"

    @server.prompt()
    def greet(who: str) -> str:
        """A greeting."""
        return f"Say hello to {who}."

    return server


Handler = Callable[[Request], Awaitable[Response]]


class OldServer:
    """A session server of revision 2025-06-18, by hand: it can forget its sessions."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.forgotten: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.calls = 0
        self.hangs = asyncio.Event()
        """Cleared: the first call waits until it is set."""
        self.hangs.set()
        self.repeats = False
        """Says what it was sent to prove who asks."""

    def forget(self) -> None:
        self.forgotten |= set(self.sessions)

    async def __call__(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        sent = f"you sent {request.headers.get('authorization')}"
        method, session = message.get("method"), request.headers.get("mcp-session-id")
        if method == "initialize":
            self.sessions.append(f"s{len(self.sessions)}")
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            return self._answer(message, result, {"mcp-session-id": self.sessions[-1]})
        if session is None:
            return Response("no session", status_code=400)
        if session in self.forgotten:
            return Response("no such session", status_code=404)
        if "id" not in message:
            return Response(status_code=202)
        if method == "tools/list":
            tools = [{"name": "ping", "inputSchema": {"type": "object"}}]
            if self.repeats:
                tools[0]["description"] = sent
            return self._answer(message, {"tools": tools})
        if method == "tools/call":
            self.calls += 1
            if self.calls == 1:
                await self.hangs.wait()
            if self.repeats:
                return self._answer(message, {"content": [{"type": "text", "text": sent}]})
            return self._answer(message, {"content": [{"type": "text", "text": f"in {session}"}]})
        return JSONResponse(
            {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
        )

    def _answer(
        self, message: dict[str, object], result: object, headers: dict[str, str] | None = None
    ) -> Response:
        return JSONResponse(
            {"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers
        )


def at_mcp(handler: Handler) -> Starlette:
    """An application with one handler for every method."""

    async def endpoint(request: Request) -> Response:
        return await handler(request)

    return Starlette(routes=[Route("/mcp", endpoint, methods=["GET", "POST", "DELETE"])])


def redirecting(to: str) -> Starlette:
    async def redirect(_: Request) -> Response:
        return RedirectResponse(to, status_code=307)

    return at_mcp(redirect)


@asynccontextmanager
async def everything() -> AsyncIterator[int]:
    """npm's server-everything over HTTP."""
    root = npm_servers()
    script = root / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(  # noqa: ASYNC220 - ended in the same function
        ["node", str(script), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60):
            while True:
                assert process.poll() is None
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()
