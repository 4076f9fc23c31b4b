import asyncio
import ipaddress

import pytest

from io_harness.sandbox.egress.decision import Allowed, Decision, Denied, Question, Reason, decide
from io_harness.sandbox.egress.rules import Effect, Rule, Rules, Verdict

from .resolvers import Answers, Hanging

PUBLIC = "1.1.1.1"
RULES = Rules(
    (
        Rule.parse(Effect.ALLOW, "*.example", "run"),
        Rule.parse(Effect.DENY, "bad.example", "admin"),
        Rule.parse(Effect.ASK, "ask.example", "run"),
        Rule.parse(Effect.ALLOW, "10.0.0.1", "run"),
        Rule.parse(Effect.ALLOW, "1.1.1.1", "run"),
    )
)
NAMES = Answers(
    {
        "good.example": [PUBLIC],
        "twice.example": [PUBLIC, PUBLIC, "2606:4700::1111"],
        "ask.example": [PUBLIC],
        "private.example": ["10.0.0.1"],
        "mixed.example": [PUBLIC, "127.0.0.1"],
        "mapped.example": ["::ffff:1.1.1.1"],
        "empty.example": [],
        "metadata.example": ["169.254.169.254"],
    }
)


def reason(decision: Decision) -> Reason:
    assert isinstance(decision, Denied)
    return decision.reason


async def yes(_: Question) -> bool:
    return True


@pytest.mark.parametrize("spelling", ["good.example", "GOOD.example.", "ｇood.example"])
async def test_an_allowed_name_is_pinned(spelling: str) -> None:
    decision = await decide(spelling, 443, RULES, NAMES)
    assert isinstance(decision, Allowed)
    assert str(decision.target) == "good.example:443"
    assert decision.addresses == (ipaddress.ip_address(PUBLIC),)
    assert decision.verdict == Verdict(Effect.ALLOW, "allow *.example", "run")
    assert not decision.asked


async def test_addresses_keep_their_order_without_repeats() -> None:
    decision = await decide("twice.example", 443, RULES, NAMES)
    assert isinstance(decision, Allowed)
    assert list(map(str, decision.addresses)) == [PUBLIC, "2606:4700::1111"]


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("good.example", 8443, Reason.NO_RULE),
        ("other.test", 443, Reason.NO_RULE),
        ("example", 443, Reason.NO_RULE),
        ("bad.example", 443, Reason.DENIED_BY_RULE),
        ("BAD.example.", 8443, Reason.DENIED_BY_RULE),
        ("bad.example\x00.good.example", 443, Reason.BAD_HOST),
        ("127.1", 443, Reason.BAD_HOST),
        ("private.example", 443, Reason.ADDRESS_REFUSED),
        ("mixed.example", 443, Reason.ADDRESS_REFUSED),
        ("mapped.example", 443, Reason.ADDRESS_REFUSED),
        ("metadata.example", 443, Reason.ADDRESS_REFUSED),
        ("10.0.0.1", 80, Reason.ADDRESS_REFUSED),
        ("missing.example", 443, Reason.NOT_RESOLVED),
        ("empty.example", 443, Reason.NOT_RESOLVED),
        ("ask.example", 443, Reason.ASK_REFUSED),
    ],
)
async def test_refusals(host: str, port: int, expected: Reason) -> None:
    assert reason(await decide(host, port, RULES, NAMES)) is expected


async def test_an_address_literal_is_not_looked_up() -> None:
    names = Answers({})
    assert isinstance(await decide("1.1.1.1", 443, RULES, names), Allowed)
    assert names.asked == []


async def test_a_refused_name_is_not_looked_up() -> None:
    names = Answers({"bad.example": [PUBLIC]})
    assert reason(await decide("bad.example", 443, RULES, names)) is Reason.DENIED_BY_RULE
    assert names.asked == []


async def test_an_opened_network_lets_its_addresses_pass() -> None:
    opened = Rules(RULES.rules, opened=(ipaddress.ip_network("10.0.0.0/24"),))
    assert isinstance(await decide("private.example", 443, opened, NAMES), Allowed)
    assert reason(await decide("mixed.example", 443, opened, NAMES)) is Reason.ADDRESS_REFUSED


async def test_each_decision_looks_up_once_so_that_rebinding_changes_nothing_after_it() -> None:
    names = Answers({"flip.example": [[PUBLIC], ["127.0.0.1"]]})
    first = await decide("flip.example", 443, RULES, names)
    assert isinstance(first, Allowed)
    assert names.asked == ["flip.example"]
    assert reason(await decide("flip.example", 443, RULES, names)) is Reason.ADDRESS_REFUSED
    assert list(map(str, first.addresses)) == [PUBLIC]


async def test_a_resolver_that_hangs_is_given_up_on() -> None:
    decision = await decide("good.example", 443, RULES, Hanging(), resolve_seconds=0.01)
    assert reason(decision) is Reason.RESOLVE_TIMED_OUT


async def test_an_approved_question_allows_and_says_so() -> None:
    put: list[str] = []

    async def ask(question: Question) -> bool:
        put.append(f"{question.target} {question.verdict.rule}")
        return True

    decision = await decide("ask.example", 443, RULES, NAMES, ask=ask)
    assert isinstance(decision, Allowed)
    assert decision.asked
    assert put == ["ask.example:443 ask ask.example:*"]


async def test_questions_that_get_no_yes_are_refusals() -> None:
    async def no(_: Question) -> bool:
        return False

    async def never(_: Question) -> bool:
        await asyncio.Event().wait()
        return True

    async def broken(_: Question) -> bool:
        raise RuntimeError("the line is cut")

    for ask, expected in (
        (no, Reason.ASK_REFUSED),
        (never, Reason.ASK_TIMED_OUT),
        (broken, Reason.ASK_FAILED),
    ):
        decision = await decide("ask.example", 443, RULES, NAMES, ask=ask, ask_seconds=0.01)
        assert reason(decision) is expected


async def test_deny_beats_an_approval_even_when_it_came_while_someone_was_asked() -> None:
    rules = RULES

    async def ask(_: Question) -> bool:
        nonlocal rules
        rules = Rules((*RULES.rules, Rule.parse(Effect.DENY, "ask.example", "admin")))
        return True

    decision = await decide("ask.example", 443, lambda: rules, NAMES, ask=ask)
    assert reason(decision) is Reason.DENIED_BY_RULE
    assert isinstance(decision, Denied)
    assert "layer: admin" in str(decision)


async def test_approval_does_not_lift_the_address_table() -> None:
    rules = Rules((Rule.parse(Effect.ASK, "private.example"),))
    assert reason(await decide("private.example", 443, rules, NAMES, ask=yes)) is (
        Reason.ADDRESS_REFUSED
    )


async def test_a_default_of_ask_asks_for_what_no_rule_names() -> None:
    rules = Rules(default=Effect.ASK)
    allowed = await decide("good.example", 22, rules, NAMES, ask=yes)
    assert isinstance(allowed, Allowed)
    assert allowed.verdict.rule is None
    assert reason(await decide("good.example", 22, rules, NAMES)) is Reason.ASK_REFUSED


async def test_a_refusal_names_rule_layer_and_cause() -> None:
    assert str(await decide("bad.example", 443, RULES, NAMES)) == (
        "bad.example:443 refused, denied by rule (rule: deny bad.example:*, layer: admin)"
    )
    assert "10.0.0.1 is private" in str(await decide("private.example", 443, RULES, NAMES))
