import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress.audit import Via
from io_harness.sandbox.egress.decision import Reason
from io_harness.sandbox.egress.dns import answer
from io_harness.sandbox.egress.limits import EgressLimits
from io_harness.sandbox.egress.rules import Effect, Rule, Rules
from io_harness.sandbox.egress.session import Session

RULES = Rules(
    (
        Rule.parse(Effect.ALLOW, "a.example"),
        Rule.parse(Effect.ALLOW, "*.b.example"),
        Rule.parse(Effect.ASK, "ask.example"),
        Rule.parse(Effect.DENY, "bad.b.example"),
        Rule.parse(Effect.ALLOW, "192.0.2.1"),
    )
)


@pytest.fixture
def session() -> Session:
    return Session("run", RULES)


def put(
    session: Session, name: str, kind: str = "A", told: set[str] | None = None
) -> dns.message.Message:
    query = dns.message.make_query(name, kind)
    wire = answer(query.to_wire(), session, set() if told is None else told)
    assert wire is not None
    reply = dns.message.from_wire(wire)
    assert reply.id == query.id
    assert reply.flags & dns.flags.QR
    return reply


def address(reply: dns.message.Message) -> str:
    return str(reply.answer[0][0])


@pytest.mark.parametrize("name", ["a.example", "A.eXample", "x.b.example", "ask.example"])
def test_names_that_may_be_reached_get_an_invented_address(session: Session, name: str) -> None:
    reply = put(session, name)
    assert reply.rcode() == dns.rcode.NOERROR
    assert address(reply).startswith("127.1.")
    assert session.name_at(address(reply)) == name.lower()
    assert session.audit.denied == 0


@pytest.mark.parametrize(
    "name",
    ["c.example", "b.example", "bad.b.example", "a.example.evil.test", "a\\.example", "127.0.0.1",
     "192.0.2.1", "example", ".", "a\\000.example", "localhost"],
)  # fmt: skip
def test_all_other_names_do_not_exist(session: Session, name: str) -> None:
    reply = put(session, name)
    assert reply.rcode() == dns.rcode.NXDOMAIN
    assert not reply.answer
    assert session.audit.denied == 1
    assert session.audit.rows[0].via is Via.DNS


def test_one_name_keeps_one_address_in_every_spelling(session: Session) -> None:
    assert address(put(session, "a.example")) == address(put(session, "A.EXAMPLE."))
    assert address(put(session, "a.example")) != address(put(session, "x.b.example"))


def test_a_name_for_another_port_is_for_programs_that_use_the_proxy(session: Session) -> None:
    session.rules = Rules.allowing("a.example:8443")
    assert put(session, "a.example").rcode() == dns.rcode.NXDOMAIN
    assert "80 and 443 only" in session.audit.rows[0].detail
    session.rules = Rules.allowing("a.example:443")
    assert put(session, "a.example").rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize("kind", ["AAAA", "HTTPS", "TXT", "MX", "SRV"])
def test_other_record_types_are_empty_and_not_missing(session: Session, kind: str) -> None:
    reply = put(session, "a.example", kind)
    assert reply.rcode() == dns.rcode.NOERROR
    assert not reply.answer


def test_a_refused_name_has_one_row_however_often_it_is_asked_for(session: Session) -> None:
    told: set[str] = set()
    for kind in ("A", "AAAA", "A"):
        put(session, "c.example", kind, told)
    assert [row.host for row in session.audit.rows] == ["c.example"]
    put(session, "d.example", "A", told)
    assert session.audit.denied == 2


def test_when_no_addresses_are_left_the_server_fails_rather_than_lies() -> None:
    session = Session("run", RULES, limits=EgressLimits(names=2))
    assert [put(session, f"{n}.b.example").rcode() for n in "xyz"] == [
        dns.rcode.NOERROR,
        dns.rcode.NOERROR,
        dns.rcode.SERVFAIL,
    ]
    assert session.audit.denied_by_reason == {Reason.LIMIT: 1}
    assert put(session, "x.b.example").rcode() == dns.rcode.NOERROR


def test_odd_queries() -> None:
    session = Session("run", RULES)
    chaos = dns.message.make_query("version.bind", "TXT", "CH")
    wire = answer(chaos.to_wire(), session, set())
    assert wire is not None
    assert dns.message.from_wire(wire).rcode() == dns.rcode.REFUSED
    update = dns.message.make_query("a.example", "A")
    update.set_opcode(dns.opcode.NOTIFY)
    wire = answer(update.to_wire(), session, set())
    assert wire is not None
    assert dns.message.from_wire(wire).rcode() == dns.rcode.NOTIMP
    reply = dns.message.make_response(dns.message.make_query("a.example", "A"))
    assert answer(reply.to_wire(), session, set()) is None


@given(st.binary(max_size=64))
def test_any_bytes_are_answered_or_ignored(wire: bytes) -> None:
    reply = answer(wire, Session("run", RULES), set())
    assert reply is None or dns.message.from_wire(reply).flags & dns.flags.QR
