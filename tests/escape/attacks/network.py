"""Reaching the host, without a packet to any address but loopback."""

from __future__ import annotations

import os
import socket

from ..inside import Scene, case

KIND = "network"


def connects(family: socket.AddressFamily, address: object) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(5)
        sock.connect(address)  # type: ignore[arg-type]
        return sock.recv(100) == b"reached"


@case(KIND)
def connect_to_loopback(scene: Scene) -> bool:
    return connects(socket.AF_INET, ("127.0.0.1", scene["port"]))


@case(KIND)
def connect_to_other_loopback_address(scene: Scene) -> bool:
    return connects(socket.AF_INET, ("127.3.2.1", scene["port"]))


@case(KIND)
def connect_to_unspecified_address(scene: Scene) -> bool:
    return connects(socket.AF_INET, ("0.0.0.0", scene["port"]))


@case(KIND)
def connect_by_name(scene: Scene) -> bool:
    return connects(socket.AF_INET, ("localhost", scene["port"]))


@case(KIND, "feature")
def connect_to_ipv6_loopback(scene: Scene) -> bool:
    return connects(socket.AF_INET6, ("::1", scene["port6"]))


@case(KIND, "feature")
def connect_to_mapped_address(scene: Scene) -> bool:
    return connects(socket.AF_INET6, ("::ffff:127.0.0.1", scene["port"]))


@case(KIND)
def send_datagram(scene: Scene) -> bool:
    """The host answers what arrives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(3)
        sock.sendto(b"anybody", ("127.0.0.1", scene["udp_port"]))
        return sock.recv(100) == b"reached"


@case(KIND)
def connect_to_abstract_socket(scene: Scene) -> bool:
    return connects(socket.AF_UNIX, "\0" + scene["abstract"])


@case(KIND)
def connect_to_socket_outside(scene: Scene) -> bool:
    return connects(socket.AF_UNIX, scene["outside_socket"])


@case(KIND)
def connect_to_socket_in_workspace(scene: Scene) -> bool:
    return connects(socket.AF_UNIX, "planted-socket")


@case(KIND)
def see_connections_of_host(scene: Scene) -> bool:
    with open("/proc/net/tcp") as file:
        return f":{scene['port']:04X} " in file.read()


@case(KIND)
def see_unix_sockets_of_host(scene: Scene) -> bool:
    with open("/proc/net/unix") as file:
        return scene["abstract"] in file.read()


@case(KIND, "feature")
def see_interfaces_of_host(scene: Scene) -> bool:
    with open("/proc/net/dev") as file:
        return any(line.split(":")[0].strip() not in ("", "lo") for line in file if ":" in line)


@case(KIND, "root")
def open_raw_socket(scene: Scene) -> bool:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


@case(KIND)
def see_routes_of_host(scene: Scene) -> bool:
    """The namespace's inode number is the same only in the same namespace."""
    return os.readlink("/proc/self/ns/net") == scene["net_namespace"]


@case(KIND)
def connect_by_fast_open(scene: Scene) -> bool:
    """A connection without connect(2)."""
    fast_open = 0x20000000
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.sendto(b"x", fast_open, ("127.0.0.1", scene["port"]))
        return sock.recv(100) == b"reached"
