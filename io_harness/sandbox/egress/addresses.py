"""The address table: which addresses a name may lead to.

Written out here because `ipaddress.is_global` differs between Python versions and calls NAT64
forms of loopback global. Sources: the IANA special-purpose address registries for IPv4 and IPv6
(RFC 6890 and its successors), RFC 6052 (NAT64), and the metadata addresses that the cloud
providers document. IPv6 is refused by default outside the global unicast block 2000::/3.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable

from io_harness.sandbox.egress.hosts import Address

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TABLE: tuple[tuple[str, str], ...] = (
    # The metadata services first, so that a refusal names them.
    ("169.254.169.254/32", "cloud metadata"),
    ("169.254.170.2/32", "cloud metadata"),
    ("168.63.129.16/32", "cloud metadata"),
    ("100.100.100.200/32", "cloud metadata"),
    ("192.0.0.192/32", "cloud metadata"),
    ("fd00:ec2::254/128", "cloud metadata"),
    ("fd20:ce::254/128", "cloud metadata"),
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "reserved"),
    ("192.52.193.0/24", "reserved"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("::ffff:0:0:0/96", "IPv4-translated"),
    ("::/96", "IPv4-compatible"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("100::/64", "discard"),
    ("2001::/32", "Teredo"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "reserved"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(text), reason) for text, reason in _TABLE
)
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_MINE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT} | {
    getattr(errno, name) for name in ("WSAEADDRNOTAVAIL", "WSAEAFNOSUPPORT") if hasattr(errno, name)
}
_ISATAP = (0x00005EFE, 0x02005EFE)


def refusal(address: Address, opened: Iterable[Network] = ()) -> str | None:
    """Why the address may not be dialled, or None when it may.

    A network in `opened` lifts the refusal of its own addresses and of nothing else: opening
    10.0.0.0/8 does not open ::ffff:10.0.0.0/104. The host's own addresses are refused too unless
    opened, since services that trust the local machine listen there.
    """
    if any(address in network for network in opened):
        return None
    for network, reason in REFUSED:
        if address in network:
            return reason
    if isinstance(address, ipaddress.IPv6Address):
        if address not in _GLOBAL_UNICAST:
            return "reserved"
        if address.scope_id is not None:
            return "scoped"
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            return "ISATAP"
    return "the host's own" if is_own(address) else None


def is_own(address: Address) -> bool:
    """Whether the address is configured on this host, on whichever interface, at this moment.

    Only an own address can be bound to. Nothing is sent. Where the system lets any address be
    bound (Linux `ip_nonlocal_bind`), every address counts as own and is refused.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError as error:
        # EADDRNOTAVAIL is the answer "not mine"; without the address family nothing is mine.
        if error.errno in _NOT_MINE:
            return False
        raise
    return True
