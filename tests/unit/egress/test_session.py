import ipaddress
import logging
from dataclasses import asdict

import pytest

from io_harness.sandbox.egress import AuditRow, EgressLimits, LimitExceeded, Rules, Session, Via
from io_harness.sandbox.egress.hosts import canonical_host
from io_harness.sandbox.egress.limits import proxy_env

from .resolvers import Answers

RULES = Rules.allowing("*.example", layer="repo")
NAMES = Answers({"a.example": ["1.1.1.1"], "b.example": ["10.0.0.1"]})


async def test_every_decision_is_counted_and_the_last_rows_are_kept() -> None:
    seen: list[AuditRow] = []
    session = Session("run-1", RULES, limits=EgressLimits(audit_rows=2), on_row=seen.append)
    for host in ("a.example", "b.example", "c.test"):
        session.audit.record(Via.CONNECT, await session.decide(host, 443, NAMES))
    assert (session.audit.allowed, session.audit.denied) == (1, 2)
    assert [row.host for row in seen] == ["a.example", "b.example", "c.test"]
    assert [row.host for row in session.audit.rows] == ["b.example", "c.test"]
    assert {str(reason): n for reason, n in session.audit.denied_by_reason.items()} == {
        "address_refused": 1,
        "no_rule": 1,
    }
    first = asdict(seen[0]) | {"at": 0}
    assert first == {
        "at": 0, "session": "run-1", "via": "connect", "host": "a.example", "port": 443,
        "allowed": True, "reason": None, "rule": "allow *.example", "layer": "repo",
        "asked": False, "addresses": ("1.1.1.1",), "detail": "",
    }  # fmt: skip


async def test_changed_rules_hold_for_the_next_decision() -> None:
    session = Session("run", RULES)
    before = await session.decide("a.example", 443, NAMES)
    session.rules = Rules()
    after = await session.decide("a.example", 443, NAMES)
    assert [type(d).__name__ for d in (before, after)] == ["Allowed", "Denied"]


def test_bytes_are_spent_up_to_the_total() -> None:
    session = Session("run", RULES, limits=EgressLimits(total_bytes=10))
    session.spend(up=4)
    session.spend(down=6)
    with pytest.raises(LimitExceeded, match="10 bytes"):
        session.spend(up=1)


def test_invented_addresses_are_distinct_and_inside_their_network() -> None:
    limits = EgressLimits(names=65_000)
    session = Session("run", RULES, limits=limits)
    made = [session.invent_address(canonical_host(f"n{i}.example")) for i in range(limits.names)]
    assert len(set(made)) == limits.names
    assert made[-1] is not None
    assert ipaddress.ip_address(made[-1]) in ipaddress.ip_network("127.1.0.0/16")
    assert session.invent_address(canonical_host("one-more.example")) is None


@pytest.mark.parametrize("field", ["connections", "head_seconds", "total_bytes", "names"])
def test_a_limit_that_is_no_limit_is_named(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        EgressLimits(**{field: 0})


def test_tokens_differ_and_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    one, two = Session("run", RULES), Session("run", RULES)
    assert one.token != two.token
    assert len(one.token) >= 32
    assert one.token not in caplog.text


def test_the_variables_name_the_proxy_in_both_spellings() -> None:
    env = proxy_env(3128, token="t")
    assert env["http_proxy"] == env["HTTPS_PROXY"] == "http://run:t@127.0.0.1:3128"
    assert env["NO_PROXY"] == "localhost,127.0.0.1,::1"
