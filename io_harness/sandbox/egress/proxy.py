"""The egress proxy of a worker: it serves listening sockets, each for one session."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from io_harness.sandbox.egress.limits import Role, proxy_env
from io_harness.sandbox.egress.listener import Listeners
from io_harness.sandbox.egress.namespace import is_elsewhere
from io_harness.sandbox.egress.resolver import Resolver, SystemResolver
from io_harness.sandbox.egress.session import Session


class Proxy:
    """One per worker process and event loop. Nothing listens until `serve` is called.

    Args:
        resolver: finds addresses; the host's own by default.
        max_connections: open at once over all sessions. Each takes two file descriptors of the
            worker, of which a process may often have 1,024.
    """

    def __init__(self, resolver: Resolver | None = None, *, max_connections: int = 256) -> None:
        self.resolver: Resolver = resolver or SystemResolver()
        self._server = Listeners(self.resolver, max_connections)

    async def serve(self, sock: socket.socket, session: Session, role: Role = Role.PROXY) -> None:
        """Serve a socket until cancelled; then end its connections and close it.

        The socket is bound and, but for DNS, listening. If it belongs to another network
        namespace, whoever can connect to it is taken to be the session's run. In this process's
        own namespace, or where that can't be known, any program of the host could connect: then
        every request must carry the session's token as the password of basic proxy
        authentication (`proxy_env` puts it into the variables), and only the proxy role is served.

        Raises:
            ValueError: another role than the proxy's for a socket of the host itself.
        """
        with sock:
            elsewhere = is_elsewhere(sock)
            if not elsewhere and role is not Role.PROXY:
                raise ValueError(
                    f"the egress role {role} can't authenticate its clients; "
                    "serve it only on a socket of another network namespace"
                )
            sock.setblocking(False)
            if role is Role.DNS:
                # Here, since its library takes longer to import than all the rest together.
                from io_harness.sandbox.egress.dns import answer_queries

                await answer_queries(sock, session)
            else:
                token = None if elsewhere else session.token
                await self._server.accept(sock, session, role, token)

    @asynccontextmanager
    async def loopback(self, session: Session) -> AsyncIterator[dict[str, str]]:
        """Serve a free port of 127.0.0.1 and yield the environment for the run's programs.

        For systems without network namespaces. The environment holds the session's token.
        """
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.bind(("127.0.0.1", 0))
        sock.listen(128)
        port = sock.getsockname()[1]
        task = asyncio.create_task(self.serve(sock, session), name=f"egress-{session.name}")
        try:
            yield proxy_env(port, token=session.token)
        finally:
            task.cancel()
            await asyncio.wait({task})
