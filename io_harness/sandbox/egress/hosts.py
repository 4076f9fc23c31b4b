"""Host names as one canonical spelling, or not at all.

Every rule, request target, SNI and DNS question passes through `canonical_host`, so that two
spellings of one host can never be judged differently. What is ambiguous is refused, not guessed.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import NewType

import idna

Host = NewType("Host", str)
"""A canonical host: a lower-case ASCII name without a trailing dot, a dotted quad, or an IPv6
address in RFC 5952 form without brackets. Only `canonical_host` makes one."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_NAME = 253
"""Longest name in its textual form without the trailing dot (RFC 1035, section 2.3.4)."""

# Not part of any host, and each has fooled a parser: "@" splits user info, "\" is "/" to browsers,
# "%" starts an escape or a zone id, the rest ends or starts another part of a URL.
_FORBIDDEN = re.compile(r"""[\x00-\x20\x7f-\xa0%@\\/?#<>^|"`{},;!$&'()*+=~]""")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


class BadHost(ValueError):
    """The text names no host in a form that all programs read alike."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a connection is to go."""

    host: Host
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def canonical_host(text: str) -> Host:
    """The canonical spelling of `text`: a name, a dotted quad or an IPv6 address.

    IPv6 may stand in brackets. One trailing dot is dropped. Names outside ASCII are mapped by
    UTS 46 and encoded by IDNA 2008. A name whose last label is a number must be a dotted quad
    without leading zeros (the WHATWG URL rule "ends in a number"), so `127.1`, `0x7f.0.0.1` and
    `2130706433` are refused.

    Raises:
        BadHost: with the reason.
    """
    if not text:
        raise BadHost("empty host")
    if len(text) > 4 * MAX_NAME:
        raise BadHost("host is too long")
    if text.startswith("[") or ":" in text:
        return _ipv6(text)
    if found := _FORBIDDEN.search(text):
        raise BadHost(f"host contains {found.group()!r}")
    name = _mapped(text).removesuffix(".")
    if not name or len(name) > MAX_NAME:
        raise BadHost("host is empty or longer than 253 characters")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return _ipv4(name)
    for label in labels:
        _check_label(label)
    return Host(name)


def address_of(host: Host) -> Address | None:
    """The address that the host is, or None when it is a name."""
    if ":" in host:
        return ipaddress.IPv6Address(host)
    return ipaddress.IPv4Address(host) if _QUAD.fullmatch(host) else None


def canonical_port(text: str) -> int:
    """A port from 1 to 65535, written in decimal without sign or leading zeros.

    Raises:
        BadHost: it is not one.
    """
    if not _PORT.fullmatch(text) or (port := int(text)) > 65535:
        raise BadHost(f"port {text[:16]!r} is not a number from 1 to 65535")
    return port


def parse_authority(text: str, default_port: int | None = None) -> Target:
    """`host:port`, `[v6]:port`, or a host alone where there is a default port.

    User info is refused; an unbracketed IPv6 address is too, since its port would be ambiguous.

    Raises:
        BadHost: with the reason.
    """
    if "@" in text:
        # Said first, since other messages quote a part, and user info may hold a password.
        raise BadHost("user info before the host")
    host, colon, port = text.rpartition(":")
    if colon and not text.endswith("]"):
        if ":" in host and not host.startswith("["):
            raise BadHost("an IPv6 address needs brackets")
        return Target(canonical_host(host), canonical_port(port))
    if default_port is None:
        raise BadHost("no port given")
    return Target(canonical_host(text), default_port)


def _mapped(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        # Full-width digits map to an address, which is no internationalised name.
        raise BadHost(f"not a valid internationalised name: {error}") from error


def _check_label(label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise BadHost(f"label {label[:64]!r} is not made of 1 to 63 letters, digits, '-' and '_'")
    if label.startswith("xn--"):
        try:
            idna.ulabel(label)
        except (idna.IDNAError, UnicodeError) as error:
            raise BadHost(f"label {label!r} is not a valid A-label: {error}") from error


def _ipv4(name: str) -> Host:
    if _QUAD.fullmatch(name):
        try:
            return Host(str(ipaddress.IPv4Address(name)))
        except ipaddress.AddressValueError:
            pass
    raise BadHost(f"{name[:64]!r} ends in a number but is not a plain dotted quad")


def _ipv6(text: str) -> Host:
    inner = text
    if text.startswith("["):
        if not text.endswith("]"):
            raise BadHost("unbalanced '[' in host")
        inner = text[1:-1]
    if "%" in inner:
        raise BadHost("an IPv6 zone id is not accepted")
    try:
        return Host(str(ipaddress.IPv6Address(inner)))
    except ipaddress.AddressValueError as error:
        raise BadHost(f"not an IPv6 address: {error}") from error
