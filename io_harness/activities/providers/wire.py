"""The one HTTP client under all providers. It makes no retries and follows no redirect."""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated

import httpx
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json

from io_harness.sandbox.egress import Reason
from io_harness.sandbox.egress.client import EgressRefused

from .base import CallProgress, Failure, ProviderError
from .failures import from_error_body, from_response, readable
from .sse import ServerEvent, SseDecoder

CONNECT_SECONDS = 15
_LOOKED_UP = (Reason.NOT_RESOLVED, Reason.RESOLVE_TIMED_OUT)
ERROR_BODY_BYTES = 64 * 1024
"""How much of an error's body is read."""
REPLY_BYTES = 32 * 1024 * 1024
"""Ceiling of one reply's stream; far above what any model writes."""


Count = Annotated[int, Field(ge=0)]
"""Tokens that a provider counted. A negative number would give a run more budget."""
Amount = Annotated[Decimal, Field(ge=0)]


class Loose(BaseModel):
    """A piece of a provider's reply, of which we read some fields."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True)
class Endpoint:
    """Where a provider listens, and how one identifies oneself."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str | None = field(default=None, repr=False)
    """The key inside `headers`: removed from any error text."""

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"


class Wire:
    """Streams events over a pool of connections."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`transport` makes the connections; by default httpx's own, which obeys no policy."""
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._transport,
                follow_redirects=False,  # a redirect could carry the key to another host
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
        return self._client

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def stream(
        self,
        endpoint: Endpoint,
        path: str,
        body: Mapping[str, JsonValue],
        take: Callable[[ServerEvent], None],
        *,
        idle_seconds: float,
        progress: CallProgress,
    ) -> None:
        """POST `body` and give `take` the events of the reply, one by one, until the stream ends.

        `take` may raise; the connection is closed then, at once. (A generator of events would stay
        open until it is collected.)

        Raises:
            ProviderError: an error status, an error in a 200 body, or a connection that was lost or
                silent for `idle_seconds`.
        """
        timeout = httpx.Timeout(
            connect=CONNECT_SECONDS, read=idle_seconds, write=idle_seconds, pool=None
        )
        decoder = SseDecoder()
        headers = {
            **endpoint.headers,
            "accept": "text/event-stream",
            "content-type": "application/json",
        }
        async with (
            _failures(endpoint, idle_seconds),
            self.client.stream(
                "POST", endpoint.url(path), content=to_json(body), headers=headers, timeout=timeout
            ) as response,
        ):
            await _require_stream(response, endpoint)
            async for chunk in response.aiter_bytes():
                progress.received_bytes += len(chunk)
                if progress.received_bytes > REPLY_BYTES:
                    raise ProviderError(
                        Failure.REPLY_TOO_LARGE, f"the reply is over {REPLY_BYTES} bytes"
                    )
                for event in decoder.feed(chunk):
                    take(event)

    async def get(self, endpoint: Endpoint, path: str) -> JsonValue:
        """The JSON document at `path`.

        Raises:
            ProviderError: an error status, no JSON, or a connection that was lost.
        """
        async with _failures(endpoint, CONNECT_SECONDS):
            response = await self.client.get(
                endpoint.url(path), headers=dict(endpoint.headers), timeout=CONNECT_SECONDS
            )
            if response.status_code != 200:
                raise _error(response, response.content, endpoint)
            try:
                document: JsonValue = response.json()
            except ValueError as error:
                raise ProviderError(
                    Failure.MALFORMED_REPLY, f"{endpoint.url(path)} answers no JSON"
                ) from error
            return document


async def _require_stream(response: httpx.Response, endpoint: Endpoint) -> None:
    if response.status_code != 200:
        raise _error(response, await _body(response), endpoint)
    media_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type == "text/event-stream":
        return
    body = await _body(response)
    document = _json_object(body)
    if document is not None and "error" in document:
        raise from_error_body(document, secrets=_secrets(endpoint))
    raise ProviderError(
        Failure.MALFORMED_REPLY,
        f"the server answered {media_type or 'no content type'} where an event stream was asked "
        f"for: {readable(body.decode('utf-8', 'replace'), _secrets(endpoint))}",
    )


def _error(response: httpx.Response, body: bytes, endpoint: Endpoint) -> ProviderError:
    return from_response(response.status_code, response.headers, body, secrets=_secrets(endpoint))


def _secrets(endpoint: Endpoint) -> tuple[str, ...]:
    return (endpoint.secret,) if endpoint.secret else ()


async def _body(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= ERROR_BODY_BYTES:
            break
    return body


class _AnyObject(BaseModel):
    model_config = ConfigDict(extra="allow")


def _json_object(body: bytes) -> dict[str, JsonValue] | None:
    try:
        return _AnyObject.model_validate_json(body).model_extra
    except ValidationError:
        return None


@asynccontextmanager
async def _failures(endpoint: Endpoint, idle_seconds: float) -> AsyncIterator[None]:
    """Name httpx's exceptions as failures."""
    url = httpx.URL(endpoint.base_url)
    where, address = url.host, f"{url.copy_with(userinfo=b'', path='/', query=None)}".rstrip("/")
    try:
        yield
    except EgressRefused as error:
        raise ProviderError(
            Failure.CONNECTION_LOST
            if error.denied.reason in _LOOKED_UP
            else Failure.PROVIDER_DENIED,
            f"connection to {where}: {error}",
        ) from error
    except httpx.ConnectTimeout as error:
        raise ProviderError(
            Failure.CONNECTION_LOST,
            f"model.base_url: {address} did not accept a connection in {CONNECT_SECONDS} s",
        ) from error
    except httpx.TimeoutException as error:
        raise ProviderError(
            Failure.TIMED_OUT, f"{where} was silent for {idle_seconds:g} s"
        ) from error
    except httpx.DecodingError as error:
        raise ProviderError(
            Failure.MALFORMED_REPLY, f"the content encoding of {where} is broken: {error}"
        ) from error
    except httpx.TransportError as error:
        if _untrusted(error):
            raise ProviderError(
                Failure.UNTRUSTED_SERVER, f"the certificate of {where} does not verify: {error}"
            ) from error
        if isinstance(error, httpx.ConnectError):
            raise ProviderError(
                Failure.CONNECTION_LOST,
                f"model.base_url: {address} can't be reached: {readable(str(error))}",
            ) from error
        raise ProviderError(
            Failure.CONNECTION_LOST,
            f"connection to {where}: {readable(str(error)) or type(error).__name__}",
        ) from error


def _untrusted(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
