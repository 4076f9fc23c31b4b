"""A person logs in to an MCP server: the authorization code grant, with PKCE."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urljoin

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl

from io_harness.activities.settings import Settings
from io_harness.sandbox.egress import Resolver, Session
from io_harness.workflows.mcp_auth import Login
from io_harness.workflows.mcp_contract import HttpServer

from ..errors import NotAuthorized
from ..http import http_client
from ..link import Link
from ..secrets import resolve
from .callback import Callback
from .choice import client_secret
from .guard import Guarded, SafeTokens, require_tls
from .logins import KeptLogin, Logins
from .machine import NotKept

ShowPage = Callable[[str], Awaitable[None]]
"""Shows a person the page of the authorization server at this address."""


class _LoginFlow(SafeTokens):
    issuer: str | None = None

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = (s for s in advertised if self.issuer and issuers_match(s, self.issuer))
        return next(wanted, advertised[0])

    async def _perform_authorization(self) -> httpx2.Request:
        metadata = self.context.oauth_metadata
        if self.issuer is not None and (
            metadata is None or not issuers_match(str(metadata.issuer), self.issuer)
        ):
            named = metadata.issuer if metadata else "no authorization server"
            raise OAuthFlowError(f"it names {named}, and the contract says {self.issuer}")
        return await super()._perform_authorization()


async def log_in(
    server: HttpServer,
    auth: Login,
    settings: Settings,
    session: Session,
    resolver: Resolver,
    callback: Callback,
    show: ShowPage,
) -> tuple[KeptLogin, Path]:
    """Go through the login, and keep what comes of it for the worker.

    Args:
        session: Decides what is connected to.

    Returns:
        The login, and the file that holds it.

    Raises:
        NotAuthorized: there is no login; the message says why.
        MissingCredential: a header or the client's secret is not to be had.
    """
    link = Link()
    seconds = float(server.connect_seconds)
    flow = _flow(server, auth, client_secret(auth, server, settings), callback, show)
    proof = Guarded(flow, server.url, seconds, link, begin=True)
    headers = resolve(server.headers, server, settings)
    async with http_client(session, resolver, headers, proof, seconds, link) as client:
        try:
            await client.post(server.url, content=_HELLO, headers=_HEADERS)
        except httpx2.HTTPError as error:
            raise NotAuthorized(link.reason or f"{type(error).__name__}: {error}") from error
    login = _kept(flow, auth)
    return login, Logins(settings.data_dir).write(server.url, auth, login)


_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": LATEST_PROTOCOL_VERSION,
    "mcp-method": "ping",
}
_HELLO = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def _flow(
    server: HttpServer, auth: Login, secret: str | None, callback: Callback, show: ShowPage
) -> _LoginFlow:
    own = httpx2.URL(server.url)

    async def shown(page: str) -> None:
        require_tls(httpx2.URL(page), own)
        await show(page)

    method = "client_secret_basic" if secret is not None else "none"
    asks = OAuthClientMetadata(client_name="io-harness", redirect_uris=[AnyUrl(callback.url)])
    known = auth.client_id and OAuthClientInformationFull(
        client_id=auth.client_id,
        client_secret=secret,
        redirect_uris=asks.redirect_uris,
        token_endpoint_auth_method=method,
    )
    flow = _LoginFlow(
        server.url, asks, NotKept(known or None), shown, callback.came, auth.client_metadata_url
    )
    flow.scope = auth.scope
    flow.issuer = auth.issuer
    return flow


def _kept(flow: _LoginFlow, auth: Login) -> KeptLogin:
    context = flow.context
    tokens, client = context.current_tokens, context.client_info
    if tokens is None or client is None:
        raise NotAuthorized("the authorization server gave no token")
    base = context.get_authorization_base_url(context.server_url)
    metadata = context.oauth_metadata
    named = context.should_include_resource_param(context.protocol_version)
    return KeptLogin(
        issuer=str(metadata.issuer) if metadata else base,
        token_endpoint=str(metadata.token_endpoint) if metadata else urljoin(base, "/token"),
        resource=context.get_resource_url() if named else None,
        client_id=client.client_id,
        client_secret=None if auth.client_secret is not None else client.client_secret,
        token_endpoint_auth_method=client.token_endpoint_auth_method,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=context.token_expiry_time,
        scope=tokens.scope,
    )
