"""A codec server: shows people, in the Temporal UI and command, what a codec or storage hides.

Follows Temporal's protocol (https://docs.temporal.io/codec-server): `{"payloads": [...]}` in protobuf's
JSON is posted to `/encode`, `/decode` or, for payloads stored outside of history, `/download`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.common import RawValue
from temporalio.converter import DataConverter

_HEADERS = ("content-type", "x-namespace", "authorization")
_MOST_BYTES = 64 * 1024 * 1024

Change = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]


def codec_server(
    converter: DataConverter, *, origins: Iterable[str], hosts: Iterable[str] = ("127.0.0.1",)
) -> Starlette:
    """The application, for any ASGI server.

    It asks for no credential: whoever can connect can decode what they have. Bind it to the loopback
    interface, or put it behind something that asks.

    Args:
        converter: Its codec and external storage are what is undone.
        origins: Of the pages that may read answers, like `https://cloud.temporal.io`.
        hosts: Names under which it is reached, against DNS rebinding.
    """

    async def encode(payloads: Sequence[Payload]) -> list[Payload]:
        return await converter.encode([RawValue(payload) for payload in payloads])

    async def decode(payloads: Sequence[Payload]) -> list[Payload]:
        if converter.external_storage is not None:
            values = await converter.decode(payloads, [RawValue] * len(payloads))
            return [value.payload for value in values]
        codec = converter.payload_codec
        return await codec.decode(payloads) if codec is not None else list(payloads)

    return Starlette(
        routes=[
            Route("/encode", _endpoint(encode), methods=["POST"]),
            Route("/decode", _endpoint(decode), methods=["POST"]),
            Route("/download", _endpoint(decode), methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(
                CORSMiddleware,
                allow_origins=list(origins),
                allow_methods=["POST"],
                allow_headers=_HEADERS,
                allow_credentials=True,
                allow_private_network=True,
            ),
        ],
    )


def _endpoint(change: Change) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            given = Parse(await _body(request), Payloads())
        except (ParseError, UnicodeDecodeError, ValueError) as error:
            return PlainTextResponse(f"not the JSON of payloads: {error}", status_code=400)
        try:
            changed = await change(given.payloads)
        except Exception as error:  # noqa: BLE001 - codecs and stores of anybody's may raise anything
            return PlainTextResponse(str(error), status_code=422)
        return Response(MessageToJson(Payloads(payloads=changed)), media_type="application/json")

    return answer


async def _body(request: Request) -> bytes:
    """Raises:
    ValueError: it has over 64 MiB.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ValueError(f"over {_MOST_BYTES:,} bytes")
    return body
