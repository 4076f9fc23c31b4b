"""The HTTP client of servers at a URL. Every connection goes through the run's egress decision:
those of redirects and of authorisation too, since they use the same client."""

import contextlib
from collections.abc import AsyncIterator, Mapping

import httpx
import httpx2

from io_harness.sandbox.egress import Resolver, Session
from io_harness.sandbox.egress.client import EgressRefused, EgressTransport

from .errors import NotStarted
from .link import MESSAGE_BYTES, Link

_KEPT_EXTENSIONS = ("timeout",)


def http_client(
    session: Session,
    resolver: Resolver,
    headers: Mapping[str, str],
    proof: httpx2.Auth,
    seconds: float,
    link: Link,
) -> httpx2.AsyncClient:
    """A client whose connections the session decides on.

    Args:
        headers: Sent with every request to the server, secrets included.
        proof: Of who asks.
        seconds: Until a connection is made, and until a server that was asked begins to answer.
    """
    return httpx2.AsyncClient(
        transport=_OverEgress(EgressTransport(session, resolver), link),
        headers={**headers, "accept-encoding": "identity"},
        auth=proof,
        timeout=httpx2.Timeout(seconds, read=None),
        trust_env=False,
    )


class _OverEgress(httpx2.AsyncBaseTransport):
    """Carries the requests of one HTTP library over the egress transport, which is of another."""

    def __init__(self, inner: EgressTransport, link: Link) -> None:
        self._inner = inner
        self._link = link

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        extensions = {k: v for k, v in request.extensions.items() if k in _KEPT_EXTENSIONS}
        outgoing = httpx.Request(
            request.method,
            str(request.url),
            headers=request.headers.raw,
            content=await request.aread(),
            extensions=extensions,
        )
        try:
            response = await self._inner.handle_async_request(outgoing)
        except EgressRefused as refused:
            failure = NotStarted(f"egress refused: {refused}")
            self._link.end(str(failure), failure)
            raise httpx2.ConnectError(str(refused), request=request) from refused
        except httpx.TransportError as error:
            raise _translated(error, request) from error
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("a compressed answer, not asked for", request=request)
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=_Capped(response, request),
            request=request,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Capped(httpx2.AsyncByteStream):
    """A body of at most MESSAGE_BYTES; an event stream's events are capped one by one elsewhere."""

    def __init__(self, response: httpx.Response, request: httpx2.Request) -> None:
        self._response = response
        self._request = request
        kind = response.headers.get("content-type", "").lower()
        self._endless = kind.startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._response.aiter_raw():
                size += len(chunk)
                if size > MESSAGE_BYTES and not self._endless:
                    raise httpx2.StreamError(f"an answer of more than {MESSAGE_BYTES // 2**20} MiB")
                yield chunk
        except httpx.TransportError as error:
            raise _translated(error, self._request) from error

    async def aclose(self) -> None:
        with contextlib.suppress(httpx.TransportError):
            await self._response.aclose()


def _translated(error: httpx.TransportError, request: httpx2.Request) -> httpx2.TransportError:
    """The same error of the other library: their names agree."""
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    translated: httpx2.TransportError = kind(str(error), request=request)
    return translated
