"""Patterns of hosts, in canonical form."""

import ipaddress
import re

from .patterns import Match, PatternError, check_text

_HOST = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_-]{1,63}\Z"
)
_DEFAULT_PORTS = ("80", "443")


def check_host_pattern(pattern: str) -> None:
    """Raises PatternError if the pattern can't be meant as written."""
    check_text(pattern)
    host, port = _split_port(pattern)
    if port not in ("", "*") and not (port.isdecimal() and 0 < int(port) < 65536):
        raise PatternError("the port must be a number from 1 to 65535, or *")
    if host == "*":
        return
    name = host.removeprefix("*.")
    if _canonical_host(name) != name:
        raise PatternError(
            "the host must be in canonical form: lower case, no trailing dot, IDNA as xn--…, an IPv4 "
            "address as a.b.c.d, an IPv6 address compressed and in brackets; `*` only as a leading `*.`"
        )
    if name != host and name[:1] in "0123456789[" and _is_address(name):
        raise PatternError("an address has no subdomains")


def host_matches(pattern: str, target: str, *, wide: bool) -> Match:
    """Match a canonical `host:port`. `*.example.com` matches names below example.com, not itself.
    Without a port a pattern means 80 and 443 when read narrowly, every port when read widely."""
    host, port = _split_port(pattern)
    target_host, target_port = _split_port(target)
    if port not in ("", "*", target_port) or (
        port == "" and not wide and target_port not in _DEFAULT_PORTS
    ):
        return "no"
    if host == "*" or host == target_host:
        return "yes"
    below = host.startswith("*.") and target_host.endswith(host[1:])
    return "yes" if below and len(target_host) >= len(host) else "no"


def normal_host(target: str) -> str:
    """The target as canonical `host:port`.

    Raises:
        PatternError: not a host and a port, or not canonical.
    """
    host, port = _split_port(target)
    canonical = _canonical_host(host)
    if canonical is None or not port.isdecimal() or not 0 < int(port) < 65536:
        raise PatternError("not a canonical host:port")
    return f"{canonical}:{int(port)}"


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text.partition("]")
        return host + "]", rest.removeprefix(":")
    host, _, port = text.partition(":")
    return host, port


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _canonical_host(host: str) -> str | None:
    if host.startswith("[") and host.endswith("]"):
        try:
            return f"[{ipaddress.IPv6Address(host[1:-1])}]" if "%" not in host else None
        except ValueError:
            return None
    name = host.lower().removesuffix(".")
    if not name.isascii() or not _HOST.match(name):
        return None
    last = name.rsplit(".", 1)[-1]
    if last.isdecimal() or re.fullmatch(r"0x[0-9a-f]*", last):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            return None
    return name
