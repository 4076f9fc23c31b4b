import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress.tls import NotClientHello, hello_in, server_name

from .hellos import hello_body, name_list, real_hello, records

HELLO = real_hello("a.example")


def name_of(data: bytes) -> str | None:
    hello = hello_in(data)
    assert hello is not None
    return server_name(hello)


def test_the_name_in_a_real_hello() -> None:
    assert name_of(HELLO) == "a.example"
    assert name_of(real_hello("A.Example")) == "a.example"
    assert name_of(real_hello(None)) is None


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_a_hello_spread_over_records(size: int) -> None:
    assert name_of(records(hello_body((0, name_list(b"a.example"))), size)) == "a.example"


@given(st.integers(0, len(HELLO) - 1))
def test_a_part_of_a_hello_needs_more(cut: int) -> None:
    assert hello_in(HELLO[:cut]) is None


def test_what_follows_the_hello_is_left_alone() -> None:
    assert name_of(HELLO + b"\x17\x03\x03\x00\x01x") == "a.example"


def test_no_extensions_is_no_name() -> None:
    assert name_of(records(hello_body())) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"\x80\x2e\x01\x03\x01",  # SSL 2.0
        b"\x15\x03\x01\x00\x02\x02\x28",  # an alert
        b"\x16\x02\x00\x00\x01",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
        records(b"x", kind=2),  # a ServerHello
        b"\x16\x03\x01\x00\x01\x01" + b"\x15\x03\x01\x00\x02\x02\x28",
    ],
)
def test_other_protocols_are_told_apart_at_once(data: bytes) -> None:
    with pytest.raises(NotClientHello):
        hello_in(data)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        hello_body((0, name_list(b"a.example")), (0, name_list(b"b.example"))),
        hello_body((0, name_list(b"a.example", b"b.example"))),
        hello_body((0, name_list())),
        hello_body((0, b"")),
        hello_body((0, name_list(b""))),
        hello_body((0, name_list(b"a.example", kind=1))),
        hello_body((0, name_list("ü".encode()))),
        hello_body((0, name_list(b"a.example") + b"x")),
        hello_body((0, name_list(b"a.example"))) + b"x",
        hello_body((0, name_list(b"a.example")))[:-3],
    ],
)
def test_malformed_hellos(body: bytes) -> None:
    with pytest.raises(NotClientHello):
        server_name(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for reader in (hello_in, server_name):
        try:
            reader(data)
        except NotClientHello:
            continue


@given(st.integers(0, len(HELLO) - 1), st.integers(1, 255))
def test_a_flipped_byte_never_yields_another_well_formed_name_by_accident(
    at: int, flip: int
) -> None:
    data = bytearray(HELLO)
    data[at] ^= flip
    try:
        hello = hello_in(bytes(data))
        name = server_name(hello) if hello is not None else None
    except NotClientHello:
        return
    inside = HELLO.index(b"a.example") <= at < HELLO.index(b"a.example") + 9
    assert name in ("a.example", None) or inside
