import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress import addresses
from io_harness.sandbox.egress.addresses import REFUSED, is_own, refusal

EXPECTED = {
    "127.0.0.1": "loopback", "127.255.255.254": "loopback", "0.0.0.0": "this network",
    "0.1.2.3": "this network", "10.0.0.1": "private", "172.16.0.1": "private",
    "172.31.255.255": "private", "192.168.1.1": "private", "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT", "169.254.1.1": "link-local",
    "169.254.169.254": "cloud metadata", "169.254.170.2": "cloud metadata",
    "168.63.129.16": "cloud metadata", "100.100.100.200": "cloud metadata",
    "192.0.0.192": "cloud metadata", "fd00:ec2::254": "cloud metadata",
    "192.0.0.8": "reserved", "192.0.2.1": "documentation", "198.51.100.1": "documentation",
    "203.0.113.1": "documentation", "198.18.0.1": "benchmarking", "198.19.255.255": "benchmarking",
    "192.88.99.1": "6to4 relay", "224.0.0.1": "multicast", "239.255.255.255": "multicast",
    "240.0.0.1": "reserved", "255.255.255.255": "reserved", "::": "unspecified",
    "::1": "loopback", "::ffff:127.0.0.1": "IPv4-mapped", "::ffff:8.8.8.8": "IPv4-mapped",
    "::ffff:0:127.0.0.1": "IPv4-translated", "::127.0.0.1": "IPv4-compatible",
    "64:ff9b::127.0.0.1": "NAT64", "64:ff9b::8.8.8.8": "NAT64", "64:ff9b:1::1": "NAT64",
    "100::1": "discard", "2001::1": "Teredo", "2001:2::1": "reserved", "2001:20::1": "reserved",
    "2001:db8::1": "documentation", "2002:7f00:1::": "6to4", "3fff::1": "documentation",
    "5f00::1": "segment routing", "fc00::1": "unique local", "fd12:3456::1": "unique local",
    "fe80::1": "link-local", "fe80::1%1": "link-local", "fec0::1": "site-local",
    "ff02::1": "multicast", "4000::1": "reserved", "1000::1": "reserved",
    "2a00:1450::5efe:10.0.0.1": "ISATAP", "2a00:1450::200:5efe:10.0.0.1": "ISATAP",
    "2a00:1450:4001::1%1": "scoped",
}  # fmt: skip
# Just outside of the networks above, and others that anyone may reach.
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
    "198.20.0.0", "223.255.255.255", "168.63.129.15", "2001:200::1", "2001:4860:4860::8888",
    "2606:4700::1111", "2a00:1450:4001::1", "2003::1",
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), EXPECTED.items())
def test_refused_addresses_name_their_kind(text: str, reason: str) -> None:
    assert refusal(ipaddress.ip_address(text)) == reason


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_pass(text: str) -> None:
    assert refusal(ipaddress.ip_address(text)) is None


@pytest.mark.parametrize(("network", "reason"), REFUSED, ids=lambda value: str(value))
def test_a_network_is_refused_from_end_to_end(network: addresses.Network, reason: str) -> None:
    assert refusal(network[0]) is not None
    assert refusal(network[-1]) is not None


def test_opening_a_network_opens_it_and_nothing_else() -> None:
    opened = (ipaddress.ip_network("10.1.0.0/16"),)
    assert refusal(ipaddress.ip_address("10.1.2.3"), opened) is None
    for still in ("10.2.0.1", "10.0.255.255", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3"):
        assert refusal(ipaddress.ip_address(still), opened) is not None


@given(st.ip_addresses(v=6))
def test_ipv6_outside_global_unicast_is_refused(address: ipaddress.IPv6Address) -> None:
    if address not in ipaddress.ip_network("2000::/3"):
        assert refusal(address) is not None


def test_the_hosts_own_address_is_found_by_asking_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_own(ipaddress.ip_address("127.0.0.1"))
    assert not is_own(ipaddress.ip_address("8.8.8.8"))
    # With an empty table nothing but ownership is left to refuse loopback.
    monkeypatch.setattr(addresses, "REFUSED", ())
    assert refusal(ipaddress.ip_address("127.0.0.1")) == "the host's own"
    assert refusal(ipaddress.ip_address("8.8.8.8")) is None


def test_ownership_that_cannot_be_told_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            raise PermissionError(1, "no sockets here")

    monkeypatch.setattr(socket, "socket", Broken)
    with pytest.raises(PermissionError):
        is_own(ipaddress.ip_address("8.8.8.8"))
