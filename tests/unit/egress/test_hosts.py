import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress.hosts import (
    BadHost,
    Target,
    address_of,
    canonical_host,
    canonical_port,
    parse_authority,
)

SAME = {
    "example.com": ["example.com", "EXAMPLE.com", "example.com.", "eXample.COM."],
    "xn--bcher-kva.example": [
        "bücher.example",
        "BÜCHER.example.",
        "xn--bcher-kva.example",
        "bu\u0308cher.example",  # decomposed
        "ｂücher。example",  # full-width letter and full stop
    ],
    "192.0.2.1": ["192.0.2.1", "192.0.2.1."],
    "2001:db8::1": ["[2001:db8::1]", "2001:db8::1", "[2001:DB8:0:0:0:0:0:1]"],
    "::ffff:7f00:1": ["[::ffff:127.0.0.1]", "::ffff:7f00:1"],
    "my_bucket.s3.example": ["my_bucket.s3.example"],
    "localhost": ["localhost", "LOCALHOST."],
    "1.example": ["1.example"],
    "0x7f.example": ["0x7f.example"],
}
REFUSED = [
    "", ".", "..", "a..b", ".a", "a.example..", "-a.example", "a-.example", "a b", " a", "a ",
    "a\x00b", "example.com\x00.evil.example", "a\r\nb", "a\tb", "a\x7fb", "a%41.example", "%31",
    "user@host", "a\\b", "a/b", "a?b", "a#b", "a:80", "http://a", "a,b", "a;b", "*.example", "a\xa0b",
    "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01",
    "256.0.0.1", "1.2.3.4.5", "1.2.3.4x.0x1", "a.1", "a.0x", "127.0.0.1..", "00000000.0.0.0",
    "１２７.1", "①②⑦.0.1", "[::1", "::1]", "[::1%eth0]", "fe80::1%25eth0", "[127.0.0.1]",
    "[::1].example", "[]", ":::", "1::2::3", "::ffff:127.1", "xn--", "xn--a", "xn--\u00fc",
    "a" * 64 + ".example", ".".join(["a" * 49] * 6), "a\u200db.example", "a\u2024b\ufe52%",
    "\u2488com", "ａ＠ｂ", "ａ％00", "a／b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "host"), [(s, host) for host, spellings in SAME.items() for s in spellings]
)
def test_spellings_of_one_host_become_one(spelling: str, host: str) -> None:
    assert canonical_host(spelling) == host


@pytest.mark.parametrize("text", REFUSED)
def test_ambiguous_hosts_are_refused(text: str) -> None:
    with pytest.raises(BadHost):
        canonical_host(text)


def test_full_width_digits_are_no_way_round_the_address_table() -> None:
    assert canonical_host("１２７.0.0.1") == "127.0.0.1"
    assert address_of(canonical_host("127。0。0。1")) == ipaddress.ip_address("127.0.0.1")


@given(st.text(max_size=40))
def test_a_canonical_host_is_stable_or_refused(text: str) -> None:
    try:
        host = canonical_host(text)
    except BadHost:
        return
    assert canonical_host(host) == host
    assert host.isascii()
    assert host == host.lower()
    assert not host.endswith(".")
    assert not set(host) & set("%@\\/?# []\x00\r\n")


@given(st.ip_addresses())
def test_addresses_keep_their_value(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert address_of(canonical_host(str(address))) == address


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=5), st.sampled_from(["{}", "0{}", "0x{:x}"])
)
def test_what_looks_like_an_address_is_one_or_is_refused(parts: list[int], form: str) -> None:
    text = ".".join(form.format(part) for part in parts)
    plain = form == "{}" and len(parts) == 4 and max(parts) <= 255
    if plain:
        assert canonical_host(text) == text
    else:
        with pytest.raises(BadHost):
            canonical_host(text)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a.example:443", Target(canonical_host("a.example"), 443)),
        ("A.Example.:1", Target(canonical_host("a.example"), 1)),
        ("[::1]:65535", Target(canonical_host("::1"), 65535)),
        ("1.2.3.4:80", Target(canonical_host("1.2.3.4"), 80)),
    ],
)
def test_authorities(text: str, target: Target) -> None:
    assert parse_authority(text) == target
    assert parse_authority(str(target)) == target


@pytest.mark.parametrize(
    "text",
    ["a.example", "a.example:", ":443", "a:0", "a:65536", "a:+80", "a: 80", "a:080", "a:8_0", "a:٨٠",
     "::1:443", "::1", "[::1]", "[::1]443", "a:80:80", "u@a:80", "u:p@a:80", "a:80@b"],
)  # fmt: skip
def test_bad_authorities_are_refused(text: str) -> None:
    with pytest.raises(BadHost):
        parse_authority(text)


def test_a_default_port_is_used_only_where_none_is_given() -> None:
    assert parse_authority("a.example", 80).port == 80
    assert parse_authority("[::1]", 80).port == 80
    assert parse_authority("a.example:81", 80).port == 81
    with pytest.raises(BadHost):
        parse_authority("a.example:", 80)


def test_a_refusal_does_not_repeat_a_password() -> None:
    for text in ("user:hunter2@a.example:80", "user:hunter2@a.example"):
        with pytest.raises(BadHost) as caught:
            parse_authority(text, 80)
        assert "hunter2" not in str(caught.value)


def test_ports() -> None:
    assert canonical_port("65535") == 65535
    for text in ("", "0", "-1", "65536", "1e3", "99999999999999999999"):
        with pytest.raises(BadHost):
            canonical_port(text)
