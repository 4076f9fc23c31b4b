"""Bounds of one session and where its listeners stand inside a network namespace."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Bounds of one session.

    Attributes:
        connections: open at once; one more is answered 503.
        head_bytes: longest request head, response head or ClientHello.
        head_seconds: until a head must be complete.
        connect_seconds: for one address that is dialled.
        addresses: how many of a name's addresses are tried.
        resolve_seconds: for the resolver.
        ask_seconds: that a request is held while someone is asked.
        idle_seconds: without a byte in either direction.
        total_bytes: of the whole session, both directions together.
        names: that the DNS answerer gives an address to.
        queries_per_second: that the DNS answerer looks at.
        audit_rows: that are kept; all are counted.
    """

    connections: int = 128
    head_bytes: int = 32 * 1024
    head_seconds: float = 10.0
    connect_seconds: float = 10.0
    addresses: int = 4
    resolve_seconds: float = 5.0
    ask_seconds: float = 300.0
    idle_seconds: float = 300.0
    total_bytes: int = 4 * 1024**3
    names: int = 4096
    queries_per_second: int = 500
    audit_rows: int = 1000

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) <= 0:
                raise ValueError(f"egress limit {name} must be positive")
        if self.names > 65_000:
            raise ValueError("egress limit names must be at most 65000, the addresses in 127.1/16")


class Role(StrEnum):
    """What a listening socket is for."""

    PROXY = "proxy"  # an HTTP proxy: absolute form and CONNECT
    DNS = "dns"  # a name server over UDP
    HTTP = "http"  # port 80 of the invented addresses
    TLS = "tls"  # port 443 of the invented addresses


@dataclass(frozen=True, slots=True)
class InsideListener:
    """A socket to create inside the network namespace, bind, listen on, and hand to the proxy."""

    role: Role
    kind: socket.SocketKind
    address: str
    port: int


INSIDE_LISTENERS: tuple[InsideListener, ...] = (
    InsideListener(Role.PROXY, socket.SOCK_STREAM, "127.0.0.1", 3128),
    InsideListener(Role.DNS, socket.SOCK_DGRAM, "127.0.0.1", 53),
    InsideListener(Role.HTTP, socket.SOCK_STREAM, "0.0.0.0", 80),
    InsideListener(Role.TLS, socket.SOCK_STREAM, "0.0.0.0", 443),
)
"""All that a namespace needs. Loopback must be up; /etc/resolv.conf must name 127.0.0.1."""

RESOLV_CONF = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n"


def proxy_env(port: int = 3128, *, token: str | None = None) -> dict[str, str]:
    """The variables that make programs use the proxy on 127.0.0.1.

    Both spellings, since curl reads only the lower-case `http_proxy` and others only the upper.
    """
    user = f"run:{token}@" if token else ""
    url = f"http://{user}127.0.0.1:{port}"
    env = {"NODE_USE_ENV_PROXY": "1"}
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        env[name] = env[name.upper()] = url
    env["no_proxy"] = env["NO_PROXY"] = "localhost,127.0.0.1,::1"
    return env
