"""A Temporal frontend on loopback that turns callers away: by its TLS, or with a status of gRPC."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import trustme


class _Refusing(grpc.GenericRpcHandler):
    def __init__(self, status: grpc.StatusCode, message: str) -> None:
        self._status = status
        self._message = message

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def refuse(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            await context.abort(self._status, self._message)
            raise AssertionError("abort raises")

        return grpc.unary_unary_rpc_method_handler(refuse)


@asynccontextmanager
async def refusing_frontend(
    status: grpc.StatusCode, message: str, authority: trustme.CA
) -> AsyncIterator[str]:
    """Serve on loopback over TLS, for callers with a certificate of the authority only.

    Yields:
        Its address.
    """
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Refusing(status, message),))
    own = authority.issue_cert("localhost")
    credentials = grpc.ssl_server_credentials(
        [(own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())],
        root_certificates=authority.cert_pem.bytes(),
        require_client_auth=True,
    )
    port = server.add_secure_port("localhost:0", credentials)
    await server.start()
    try:
        yield f"localhost:{port}"
    finally:
        await server.stop(grace=0)
