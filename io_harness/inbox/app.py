"""The web application."""

from collections.abc import Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from temporalio.client import Client
from temporalio.service import RPCError

from io_harness import runs

from . import guard
from .form import FormError, read_decision
from .pages import Notice, Pages, too_late
from .reading import Open, Seen, read_inbox, read_request

UiOf = Callable[[str], str | None]


class InboxApp:
    """The pages over one client."""

    def __init__(self, client: Client, secrets: guard.Secrets, *, by: str, ui: UiOf) -> None:
        """
        Args:
            by: Who decides here, as runs log it.
            ui: Address of a run in the Temporal UI, where it is known.
        """
        self._client = client
        self._secrets = secrets
        self._by = by
        self._ui = ui
        self._css = files("io_harness.inbox").joinpath("inbox.css").read_text(encoding="utf-8")
        self._pages = Pages(by=by, namespace=client.namespace, csrf=secrets.csrf)

    def asgi(self) -> Starlette:
        """The application with what guards it."""
        return Starlette(
            routes=[
                Route("/", self.inbox),
                Route(guard.LOGIN, self.login),
                Route("/inbox.css", self.style),
                Route("/requests/{request}/{run:path}", self.look, methods=["GET"]),
                Route("/requests/{request}/{run:path}", self.decide, methods=["POST"]),
            ],
            middleware=guard.guarded(self._secrets),
            exception_handlers={runs.NoSuchRun: self._gone, RPCError: self._unanswered},
        )

    async def login(self, request: Request) -> Response:
        return guard.login(request, self._secrets)

    async def style(self, request: Request) -> Response:
        return Response(self._css, media_type="text/css")

    async def inbox(self, request: Request) -> Response:
        inbox = await read_inbox(self._client)
        idle = not await runs.workers(self._client, but_us=True)
        return HTMLResponse(self._pages.inbox(inbox, idle=idle))

    async def look(self, request: Request) -> Response:
        run, name = request.path_params["run"], request.path_params["request"]
        return await self._page(run, await read_request(self._client, run, name))

    async def decide(self, request: Request) -> Response:
        """Send the decision; the first one wins, and who comes later is told who was first."""
        form = await request.form()
        if not guard.from_own_form(request, form, self._secrets):
            page = self._pages.failure("Not sent from this inbox", "Open the request here again.")
            return HTMLResponse(page, status_code=403)
        run, name = request.path_params["run"], request.path_params["request"]
        seen = await read_request(self._client, run, name)
        if not isinstance(seen.state, Open):
            return await self._page(run, seen, Notice(too_late(seen)), status=409)
        typed = {key: value for key, value in form.items() if isinstance(value, str)}
        try:
            decision = read_decision(typed, seen.state.pending, seen.state.call, self._by)
        except FormError as error:
            return await self._page(run, seen, Notice(str(error)), status=422, typed=typed)
        try:
            await runs.decide(self._client, run, decision)
        except runs.DecisionRejected as error:
            seen = await read_request(self._client, run, name)
            still = Notice(f"Not taken: {error}.")
            notice = still if isinstance(seen.state, Open) else Notice(too_late(seen))
            return await self._page(run, seen, notice, status=409, typed=typed)
        return RedirectResponse(request.url.path, status_code=303)

    async def _page(
        self,
        run: str,
        seen: Seen,
        notice: Notice | None = None,
        *,
        status: int = 200,
        typed: dict[str, str] | None = None,
    ) -> Response:
        inbox = await read_inbox(self._client)
        page = self._pages.request(run, seen, inbox, ui=self._ui(run), notice=notice, typed=typed)
        return HTMLResponse(page, status_code=status)

    async def _gone(self, request: Request, error: Exception) -> Response:
        return HTMLResponse(self._pages.failure("No such run", str(error)), status_code=404)

    async def _unanswered(self, request: Request, error: Exception) -> Response:
        text = f"{error}. If no worker runs, start one with `io-harness worker`."
        return HTMLResponse(self._pages.failure("Temporal gave no answer", text), status_code=502)
