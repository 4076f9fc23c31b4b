"""Serves a small web application, usually on loopback: behind `inbox` and `codec-server`."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from .exits import CommandFailed, Exit

LOOPBACK = "127.0.0.1"
_GRACE_SECONDS = 3


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: uvicorn would raise them again, past what still has to be closed."""
        yield


def listening(port: int, bind: str = LOOPBACK) -> tuple[socket.socket, str]:
    """A socket on the loopback interface or what `bind` says, and its address.

    Raises:
        CommandFailed: FAILED; the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bind, port))
        listener.listen()  # who connects before the application is up waits for it
    except OSError as error:
        listener.close()
        raise CommandFailed(
            Exit.FAILED, f"--port {port}: {error.strerror}; choose another one, or 0 for a free one"
        ) from error
    return listener, f"http://{bind}:{listener.getsockname()[1]}"


async def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    server = _Server(
        uvicorn.Config(
            app,
            http="h11",  # httptools leaves blanks after a header's value, against RFC 9110, 5.5
            access_log=False,  # addresses may hold a token
            server_header=False,
            log_config=None,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )

    def told() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    await server.serve([listener])
