"""One connection to one server: a task that holds it, and calls that other tasks make over it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, ToolsListChanged, listen
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError

from io_harness import __version__
from io_harness.workflows.mcp_contract import HttpServer

from .catalogue import Listed, Server
from .errors import (
    ConnectionEnded,
    McpFailure,
    MissingCredential,
    NoAnswer,
    NotStarted,
    ServerRefused,
    SessionExpired,
)
from .link import CLOSED, Link
from .questions import MAX_ROUNDS, Questions
from .text import one_line, plain

T = TypeVar("T")

OpenStreams = Callable[[Link], AbstractAsyncContextManager[Any]]

CLOSE_SECONDS = 5.0
MAX_PAGES = 50
MAX_LISTED = 2_000
_ERROR_LENGTH = 2_000
_LISTENS = 10
_LISTEN_PAUSE_SECONDS = 2.0
_CLIENT = types.Implementation(name="io-harness", version=__version__)


class _Dispatcher(JSONRPCDispatcher[Any]):
    def __init__(self, reading: Any, writing: Any, link: Link) -> None:
        super().__init__(reading, writing)
        self._link = link

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: types.RequestId | None = None,
    ) -> dict[str, Any]:
        """The answer without secrets. A result that doesn't say of which type it is, is complete
        (SEP-2322); the package would take it for an invalid one."""
        try:
            raw = await super().send_raw_request(
                method, params, opts, _related_request_id=_related_request_id
            )
        except MCPError as error:
            told = error.error
            raise MCPError(
                told.code, self._link.shown(told.message), self._link.shown_within(told.data)
            ) from None
        shown: dict[str, Any] = self._link.shown_within(raw)
        shown.setdefault("resultType", "complete")
        return shown


class _Session(ClientSession):
    """Results are checked by the caller, within bounds; here only their form is."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        return None


class Connection:
    """Open from the return of `open` to `close`, or to the end of the server."""

    def __init__(self, server: Server, open_streams: OpenStreams) -> None:
        self.server = server
        self.link = Link()
        self.stale = False
        """The server said that its list of tools changed."""
        self.known = False
        """Whether the run knows of it: it was made for the list of tools, or a call's result told."""
        self.used = 0.0
        """When it was last used, by the loop's clock."""
        self.busy = 0
        """Requests under way."""
        self._open_streams = open_streams
        self._ready: asyncio.Future[_Session] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listed: Listed | None = None
        self._live: dict[str, types.Tool] = {}
        self._asking: list[Questions] = []

    # --- its life ---------------------------------------------------------------------------------

    async def open(self, *, handshake: bool = False) -> None:
        """Connect, agree on a version, and list the tools.

        Args:
            handshake: Begin with the handshake of older revisions, without asking for a newer one.

        Raises:
            NotStarted: with what the server wrote to standard error.
        """
        self._task = asyncio.create_task(
            self._hold(handshake=handshake), name=f"mcp-{self.server.id}"
        )
        try:
            async with asyncio.timeout(self.server.connect_seconds):
                await asyncio.shield(self._ready)
            await self.list_tools()
        except TimeoutError:
            await self.close()
            raise NotStarted(
                self._told(f"no connection within {self.server.connect_seconds} s")
            ) from None
        except MissingCredential:
            await self.close()
            raise
        except McpFailure as error:
            await self.close()
            raise NotStarted(self._told(str(error))) from error
        except BaseException:
            await self.close()
            raise

    @property
    def alive(self) -> bool:
        return (
            self._task is not None
            and not self._task.done()
            and not self._closing.is_set()
            and not self.link.ended.is_set()
        )

    @property
    def stateless(self) -> bool:
        """Whether nothing that the server remembers ends with the connection."""
        modern = self._listed is not None and self._listed.protocol in MODERN_PROTOCOL_VERSIONS
        return modern and isinstance(self.server, HttpServer)

    async def close(self) -> None:
        """End the connection, within a bound. May be called again."""
        self._closing.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
        if not self._ready.done():
            self._ready.cancel()

    async def _hold(self, *, handshake: bool) -> None:
        """Everything of the connection is entered and left in this one task."""
        try:
            async with (
                self._open_streams(self.link) as (reading, writing),
                _Session(
                    dispatcher=_Dispatcher(reading, writing, self.link),
                    client_info=_CLIENT,
                    message_handler=self._heard,
                    elicitation_callback=self._asked
                    if self.server.questions != "decline"
                    else None,
                ) as session,
            ):
                agreeing = asyncio.create_task(self._agree(session, handshake=handshake))
                try:
                    await self._first_of(agreeing)
                    if agreeing.done() and not self._ready.done():
                        agreeing.result()
                        self._ready.set_result(session)
                    async with self._listening(session):
                        await self._first_of()
                finally:
                    agreeing.cancel()
                    await asyncio.wait({agreeing})
        except Exception as error:  # noqa: BLE001 - libraries below raise groups of many kinds
            self._fail(error)
        finally:
            self.link.end(CLOSED)
            self._fail(None)

    async def _first_of(self, *tasks: asyncio.Task[None]) -> None:
        """Wait for the wish to close, the end of the transport, or one of the tasks."""
        waits = [asyncio.create_task(e.wait()) for e in (self._closing, self.link.ended)]
        try:
            await asyncio.wait({*tasks, *waits}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _fail(self, error: Exception | None) -> None:
        first = _first(error) if error is not None else None
        if first is not None:
            self.link.end(describe(first))
        if not self._ready.done():
            known = first if isinstance(first, McpFailure) else NotStarted(self.link.reason)
            self._ready.set_exception(known)
            self._ready.exception()  # it was told, also where nobody waits any more

    async def _agree(self, session: _Session, *, handshake: bool) -> None:
        """The stateless revision where the server knows it, else the handshake."""
        if handshake:
            await session.initialize()
            return
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            # Whatever isn't a yes is an older server's no.
            try:
                await session.initialize()
            except MCPError as error:
                if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                    raise
                await session.discover()  # it was slow to start, and is of the newer kind after all

    # --- what it says by itself -------------------------------------------------------------------

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.stale = True

    async def _asked(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """An older server asks in the middle of a call; of several, it is taken for the newest's."""
        if not self._asking:
            return types.ElicitResult(action="decline")
        shown = self.link.shown_within(params.model_dump(mode="json", by_alias=True))
        return self._asking[-1].answer(type(params).model_validate(shown))

    @asynccontextmanager
    async def _listening(self, session: _Session) -> AsyncIterator[None]:
        """Hear of changed lists, where the server is of the revision in which one must ask to."""
        tools = session.server_capabilities.tools if session.server_capabilities else None
        modern = session.protocol_version in MODERN_PROTOCOL_VERSIONS
        if not modern or tools is None or not tools.list_changed:
            yield
            return
        task = asyncio.create_task(self._listen(session))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _listen(self, session: _Session) -> None:
        for _ in range(_LISTENS):
            with suppress(MCPError, SubscriptionLost, RuntimeError):
                async with listen(session, tools_list_changed=True) as events:
                    async for event in events:
                        if isinstance(event, ToolsListChanged):
                            self.stale = True
            await asyncio.sleep(_LISTEN_PAUSE_SECONDS)
            self.stale = True  # what changed in between was not heard

    # --- what it is asked -------------------------------------------------------------------------

    async def list_tools(self) -> Listed:
        """The server's tools now, all pages.

        Raises:
            McpFailure: there is no list within the time for it.
        """
        session = await self._session()
        self.stale = False
        tools, cut, refresh = await self.ask(
            self._pages(session), self.server.list_seconds, "its list of tools"
        )
        self._live = {}
        for tool in tools:
            self._live.setdefault(tool.name, tool)
        info, able = session.server_info, session.server_capabilities
        modern = session.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._listed = Listed(
            protocol=session.protocol_version or "",
            software=f"{info.name} {info.version}" if info else "",
            tools=tuple(tools),
            resources=able is not None and able.resources is not None,
            prompts=able is not None and able.prompts is not None,
            refresh_seconds=refresh if modern and refresh > 0 else None,
            cut=cut,
        )
        return self._listed

    async def listed(self) -> Listed:
        """The list, asked for anew where the server said that it changed."""
        return await self.list_tools() if self.stale or self._listed is None else self._listed

    def live(self, tool: str) -> types.Tool | None:
        """What the server declared of a tool, when it was last asked."""
        return self._live.get(tool)

    async def _pages(self, session: _Session) -> tuple[list[types.Tool], str, float]:
        able = session.server_capabilities
        if able is not None and able.tools is None:
            return [], "", 0.0
        found: list[types.Tool] = []
        cursor: str | None = None
        seen: set[str] = set()
        refresh = 0.0
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await session.list_tools(params=params)
            found += page.tools
            refresh = page.ttl_ms / 1000
            cursor = page.next_cursor
            if not cursor or len(found) > MAX_LISTED:
                break
            if cursor in seen:
                return found, "its list repeats a page; the rest was not read", refresh
            seen.add(cursor)
        if cursor:
            return found[:MAX_LISTED], "its list is too long; the rest was not read", refresh
        return found, "", refresh

    async def call(
        self,
        tool: str,
        arguments: dict[str, JsonValue],
        questions: Questions,
        progress: ProgressFnT | None = None,
    ) -> types.CallToolResult:
        """Call a tool. Cancelling the awaiting task cancels the call at the server, and leaves the
        connection up.

        Args:
            questions: Hears what the server asks, and says what it is answered.

        Raises:
            McpFailure: there is no result.
        """
        session = await self._session()

        async def round_of(
            before: types.InputRequiredResult | None,
        ) -> types.CallToolResult | types.InputRequiredResult:
            answers = _answers(before, questions) if before else None
            state = before.request_state if before else None
            return await session.call_tool(
                tool,
                arguments,
                progress_callback=progress,
                input_responses=answers,
                request_state=state,
                allow_input_required=True,
            )

        async def run() -> types.CallToolResult:
            before: types.InputRequiredResult | None = None
            for _ in range(MAX_ROUNDS):
                try:
                    result = await round_of(before)
                except MCPError as error:
                    if error.code != types.HEADER_MISMATCH:
                        raise
                    await self._pages(session)  # the client mirrors arguments as the list says
                    result = await round_of(before)
                if isinstance(result, types.CallToolResult):
                    return result
                before = result
            raise ServerRefused(f"it asked questions {MAX_ROUNDS} times and did nothing")

        self._asking.append(questions)
        try:
            return await self.ask(run(), self.server.call_seconds, "its answer")
        finally:
            self._asking.remove(questions)

    async def session(self) -> ClientSession:
        """For requests that have no method here; wrap them in `ask`."""
        return await self._session()

    async def ask(self, request: Awaitable[T], seconds: float, what: str) -> T:
        """The result of a request, its failures told apart.

        Raises:
            NoAnswer, ConnectionEnded, SessionExpired, ServerRefused
        """
        self.busy += 1
        try:
            async with asyncio.timeout(seconds):
                return await request
        except TimeoutError:
            raise NoAnswer(f"{what} did not come within {seconds:g} s") from None
        except MCPError as error:
            raise self._of_protocol(error) from error
        except ValidationError as error:
            raise ServerRefused(
                f"its answer is not what the protocol asks for: {error}"[:_ERROR_LENGTH]
            ) from error
        except RuntimeError as error:
            raise ServerRefused(plain(str(error), _ERROR_LENGTH)) from error
        finally:
            self.busy -= 1
            self.used = asyncio.get_running_loop().time()

    def _of_protocol(self, error: MCPError) -> McpFailure:
        message = plain(error.error.message, _ERROR_LENGTH)
        if error.code == types.CONNECTION_CLOSED and self.link.failure is not None:
            return self.link.failure
        if error.code == types.CONNECTION_CLOSED:
            return ConnectionEnded(self._told(self.link.reason or message))
        if error.code == types.INVALID_REQUEST and error.error.message == "Session terminated":
            return SessionExpired("it has forgotten the session")
        return ServerRefused(f"error {error.code}: {message}")

    async def _session(self) -> _Session:
        if not self.alive:
            raise NotStarted(self._told(self.link.reason or "not connected"))
        return await asyncio.shield(self._ready)

    def _told(self, what: str) -> str:
        """With what helps to find out why: what it printed, and its standard error."""
        parts = [what]
        if self.link.noise:
            parts.append(f"its output is not MCP, it begins: {self.link.shown(self.link.noise)!r}")
        if tail := self.link.tail():
            parts.append(f"its standard error ends:\n{self.link.shown(tail)}")
        return "; ".join(parts)


def _answers(
    before: types.InputRequiredResult, questions: Questions
) -> types.InputResponses | None:
    """What each of the server's requests is answered. Only elicitation has a way to say no.

    Raises:
        ServerRefused: it wants what this client doesn't offer.
    """
    answers: dict[str, types.InputResponse] = {}
    for key, request in (before.input_requests or {}).items():
        if not isinstance(request, types.ElicitRequest):
            raise ServerRefused(f"it asks for {request.method}, which this client doesn't offer")
        answers[key] = questions.answer(request.params)
    return answers or None


def _first(error: Exception) -> Exception:
    """The first error of a group."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def describe(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, McpFailure):
        return str(error)
    if isinstance(error, MCPError):
        return f"error {error.code}: {plain(error.error.message, _ERROR_LENGTH)}"
    return one_line(f"{type(error).__name__}: {error}", _ERROR_LENGTH)
