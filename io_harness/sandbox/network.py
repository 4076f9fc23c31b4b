"""A command's network through the egress proxy: the plan's doors for one session."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import partial

from .egress import INSIDE_LISTENERS, Proxy, Role, Session, proxy_env
from .plan import Door, NetProxy


def through_proxy(proxy: Proxy, session: Session) -> NetProxy:
    """The network of a plan whose command reaches what the session's rules allow.

    Where the backend has a network namespace, programs that ignore proxy variables are served too:
    by a name server and by listeners on ports 80 and 443 of the addresses that it invents.
    Elsewhere the variables carry the session's token.
    """

    def variables(port: int, isolated: bool) -> Mapping[str, str]:
        return proxy_env(port, token=None if isolated else session.token)

    def door(role: Role, kind: socket.SocketKind, host: str, port: int) -> Door:
        serve = partial(proxy.serve, session=session, role=role)
        return Door(
            serve=serve,
            host=host,
            port=port,
            kind="stream" if kind is socket.SOCK_STREAM else "datagram",
        )

    doors = tuple(door(one.role, one.kind, one.address, one.port) for one in INSIDE_LISTENERS)
    return NetProxy(doors=doors, variables=variables)
