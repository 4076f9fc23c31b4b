"""Drives a flow of the MCP package: over TLS, in time, and with no secret in an error."""

import ipaddress
import json
import re
from collections.abc import AsyncGenerator

import httpx2
from jwt.exceptions import PyJWTError
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from ..errors import NotAuthorized
from ..link import Link
from ..text import one_line

_MESSAGE = 300
_CODE = re.compile(r"[a-z_]{1,40}\Z")


class SafeTokens(OAuthClientProvider):
    """What every flow does in another way than the package: the contract's scope is what is asked for,
    and an answer of the token endpoint is never quoted, since it may hold a token or a secret.

    Attributes:
        scope: Of the contract; None leaves the choice to what the server says.
    """

    scope: str | None = None

    async def _perform_authorization(self) -> httpx2.Request:
        if self.scope is not None:
            self.context.client_metadata.scope = self.scope
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        tokens = await tokens_of(response)
        tokens.scope = tokens.scope or self.context.client_metadata.scope
        self.context.current_tokens = tokens
        self.context.update_token_expiry(tokens)
        await self.context.storage.set_tokens(tokens)


async def tokens_of(response: httpx2.Response) -> OAuthToken:
    """What a token endpoint answered.

    Raises:
        OAuthTokenError: It is a refusal, or no token. Of a refusal, its code alone is told
            (RFC 6749, 5.2).
    """
    body = await response.aread()
    if response.status_code not in (200, 201):
        raise OAuthTokenError(
            f"the token endpoint answered HTTP {response.status_code}{_refusal(body)}"
        )
    try:
        return OAuthToken.model_validate_json(body)
    except ValidationError:
        raise OAuthTokenError("the token endpoint's answer holds no bearer token") from None


def _refusal(body: bytes) -> str:
    try:
        code = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" ({code})" if isinstance(code, str) and _CODE.match(code) else ""


class Guarded(httpx2.Auth):
    """Proof of who asks, by one of the package's flows.

    The package holds a lock while a request waits for its answer. Here a request goes out before the
    flow is entered, so that a call that hangs doesn't hold up the others.
    """

    def __init__(
        self,
        flow: OAuthClientProvider,
        url: str,
        seconds: float,
        link: Link,
        *,
        begin: bool = False,
    ) -> None:
        """
        Args:
            url: The server's, from the contract.
            seconds: For each answer of an authorization server.
            link: Hears why a request could not be made.
            begin: Go through the flow with the first request, whatever the server answers to it.
        """
        self._flow = flow
        self._url = httpx2.URL(url)
        self._seconds = seconds
        self._link = link
        self._begin = begin

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = self._authorize(request)
        answered: httpx2.Response | None = yield request
        assert answered is not None
        if self._begin and not wants_proof(answered):
            answered = httpx2.Response(401, request=request)
        if not wants_proof(answered):
            return
        self._begin = False
        flow = self._flow.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is request and answered is not None and _token(request) == used:
                    response, answered = answered, None
                else:
                    response = yield self._bounded(outgoing, request)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except (OAuthFlowError, ValueError, PyJWTError) as error:
            raise self._failed(error) from None
        finally:
            await flow.aclose()

    def _authorize(self, request: httpx2.Request) -> str | None:
        """Give the request the token at hand, also one that may be over: the server says so."""
        if tokens := self._flow.context.current_tokens:
            self._link.hide(tokens.access_token)
            request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        return _token(request)

    def _bounded(self, outgoing: httpx2.Request, request: httpx2.Request) -> httpx2.Request:
        if outgoing is not request:
            return bounded(outgoing, self._url, self._seconds)
        self._link.hide(_token(request) or "")
        return request

    def _failed(self, error: Exception) -> NotAuthorized:
        match error:
            case OAuthFlowError():
                why = one_line(str(error), _MESSAGE)
            case PyJWTError():
                why = "the key is none of the algorithm that the contract names"
            case _:
                why = "the authorization server's answer can't be read"
        failure = NotAuthorized(f"it wants OAuth, and that failed: {why}")
        self._link.end(str(failure), failure)
        return failure


def wants_proof(response: httpx2.Response) -> bool:
    """Whether the server refused for want of a token, or of a scope of it (RFC 6750, 3.1)."""
    return response.status_code == 401 or lacks_scope(response)


def lacks_scope(response: httpx2.Response) -> bool:
    return (
        response.status_code == 403
        and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    )


def bounded(outgoing: httpx2.Request, own: httpx2.URL, seconds: float) -> httpx2.Request:
    """A request to an authorization server, as it may be sent.

    Raises:
        OAuthFlowError: it would go in the clear.
    """
    require_tls(outgoing.url, own)
    outgoing.headers["accept-encoding"] = "identity"
    outgoing.extensions = {**outgoing.extensions, "timeout": httpx2.Timeout(seconds).as_dict()}
    return outgoing


def require_tls(url: httpx2.URL, own: httpx2.URL) -> None:
    """OAuth goes over TLS (OAuth 2.1, 1.5). Exempt are the loopback, and the origin of the contract's
    own URL, where the contract's author chose to do without.

    Raises:
        OAuthFlowError: the URL is neither.
    """
    same = (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)
    if url.scheme != "https" and not same and not _loopback(url.host):
        raise OAuthFlowError(f"{url.scheme}://{url.host} is not https")


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(request: httpx2.Request) -> str | None:
    found: str | None = request.headers.get("Authorization")
    return found
