"""Who may use the inbox: the browser that was given the token, and forms that the inbox made.

The token comes once, in the address that the command prints, and becomes a cookie. A page of another
origin can neither read the inbox (no CORS, the cookie is SameSite=Strict) nor post to it (Origin and a
secret in each form are checked), nor reach it under a name of its own (DNS rebinding; Host is checked).
"""

import hmac
import secrets
from dataclasses import dataclass, field

from starlette.datastructures import FormData
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost")
LOGIN = "/login"
CSRF_FIELD = "csrf"
_OPEN = frozenset({LOGIN, "/inbox.css"})
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Secrets:
    """Of one inbox, made when it starts and gone when it ends."""

    token: str = field(default_factory=_secret, repr=False)
    """In the address that the person is given."""
    session: str = field(default_factory=_secret, repr=False)
    """In the cookie."""
    csrf: str = field(default_factory=_secret, repr=False)
    """In every form."""


def guarded(secrets: Secrets) -> list[Middleware]:
    """What stands before the pages, outermost first."""
    return [
        Middleware(_Headers),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        Middleware(_SignedIn, secrets=secrets),
    ]


def login(request: Request, secrets: Secrets) -> Response:
    """Change the token of the address for the cookie."""
    if not _same(request.query_params.get("token", ""), secrets.token):
        return _refused(401)
    response = RedirectResponse("/", status_code=303)
    # Cookies don't tell ports apart: without the port, two inboxes would sign each other out.
    response.set_cookie(_cookie(request), secrets.session, httponly=True, samesite="strict")
    return response


def from_own_form(request: Request, form: FormData, secrets: Secrets) -> bool:
    """Whether a form was sent from a page of this inbox."""
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers['host']}"
    return origin in (None, own) and _same(str(form.get(CSRF_FIELD, "")), secrets.csrf)


class _SignedIn:
    def __init__(self, app: ASGIApp, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and scope["path"] not in _OPEN:
            request = Request(scope)
            if not _same(request.cookies.get(_cookie(request), ""), self._secrets.session):
                app = _refused(401)
        await app(scope, receive, send)


class _Headers:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *ours]
            await send(message)

        await self._app(scope, receive, sending)


def _cookie(request: Request) -> str:
    return f"io-harness-inbox-{request.url.port or 80}"


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _refused(status: int) -> Response:
    text = "Open the address that `io-harness inbox` printed: it holds the token.\n"
    return Response(text, status_code=status, media_type="text/plain")
