"""Proof of who asks by a login that a person made earlier on this host."""

import time
from collections.abc import AsyncGenerator

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from io_harness.workflows.mcp_auth import Login

from ..errors import NotAuthorized
from ..link import Link
from ..text import one_line
from .guard import bounded, lacks_scope, tokens_of
from .logins import KeptLogin, Logins
from .machine import NotKept

_SHOWN = 300


class KeptBearer(httpx2.Auth):
    """Sends the kept token, and renews it where it is over or the server refuses it."""

    def __init__(
        self,
        logins: Logins,
        server: str,
        url: str,
        auth: Login,
        secret: str | None,
        seconds: float,
        link: Link,
    ) -> None:
        """
        Args:
            server: Its id, for messages.
            secret: The client's, where the contract names one.
            seconds: For an answer of the authorization server.
            link: Hears why a request could not be made.
        """
        self._logins = logins
        self._server = server
        self._url = url
        self._auth = auth
        self._secret = secret
        self._seconds = seconds
        self._link = link

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        refused: str | None = None
        for _ in range(2):
            held = self._held()
            if held.is_over or held.access_token == refused:
                async with self._logins.renewing(self._url, self._auth):
                    held = self._held()  # another task or worker may have renewed it
                    if held.is_over or held.access_token == refused:
                        answer = yield self._renewal(held)
                        held = await self._renewed(held, answer)
            self._link.hide(held.access_token)
            request.headers["Authorization"] = f"Bearer {held.access_token}"
            response = yield request
            if response.status_code != 401:
                break
            refused = held.access_token
        else:
            raise self._no("it refuses a token that was just renewed")
        if lacks_scope(response):
            raise self._no(_more_scope(held.scope, extract_scope_from_www_auth(response)))

    def _held(self) -> KeptLogin:
        held = self._logins.read(self._url, self._auth)
        if held is None:
            raise self._no("nobody has logged in to it on this host")
        return held

    def _renewal(self, held: KeptLogin) -> httpx2.Request:
        if held.refresh_token is None:
            raise self._no("the login is over, and can't be renewed")
        data = {
            "grant_type": "refresh_token",
            "refresh_token": held.refresh_token,
            "client_id": held.client_id,
        }
        if held.resource is not None:
            data["resource"] = held.resource
        data, headers = self._client(held).prepare_token_auth(data, {})
        outgoing = httpx2.Request("POST", held.token_endpoint, data=data, headers=headers)
        try:
            return bounded(outgoing, httpx2.URL(self._url), self._seconds)
        except OAuthFlowError as error:
            raise self._no(str(error)) from None

    def _client(self, held: KeptLogin) -> OAuthContext:
        known = OAuthClientInformationFull(
            client_id=held.client_id,
            client_secret=self._secret or held.client_secret,
            token_endpoint_auth_method=held.token_endpoint_auth_method,
        )
        asks = OAuthClientMetadata(redirect_uris=None)
        return OAuthContext(self._url, asks, NotKept(), None, None, client_info=known)

    async def _renewed(self, held: KeptLogin, answer: httpx2.Response) -> KeptLogin:
        try:
            tokens = await tokens_of(answer)
        except OAuthFlowError as error:
            raise self._no(f"the login could not be renewed: {error}") from None
        renewed = held.model_copy(
            update={
                "access_token": tokens.access_token,
                "refresh_token": tokens.refresh_token or held.refresh_token,
                "expires_at": time.time() + tokens.expires_in if tokens.expires_in else None,
                "scope": tokens.scope or held.scope,
            }
        )
        self._logins.write(self._url, self._auth, renewed)
        return renewed

    def _no(self, why: str) -> NotAuthorized:
        failure = NotAuthorized(
            f"{why}. Run on the worker's host: io-harness mcp login CONTRACT {self._server}"
        )
        self._link.end(str(failure), failure)
        return failure


def _more_scope(granted: str | None, wanted: str | None) -> str:
    if wanted is None:
        return "it wants a token of more scope, and doesn't say which"
    both = one_line(union_scopes(granted, wanted) or "", _SHOWN)
    return f"it wants a token of more scope: set auth.scope in the contract to {both!r}"
