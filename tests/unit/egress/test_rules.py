import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.egress.hosts import Target, parse_authority
from io_harness.sandbox.egress.rules import BadRule, Effect, Rule, Rules, Verdict

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY


@pytest.mark.parametrize(
    ("pattern", "target", "matches"),
    [
        ("a.example", "a.example:443", True),
        ("a.example", "a.example:80", True),
        ("A.Example.", "a.example:80", True),
        ("a.example", "a.example:8080", False),
        ("a.example:8080", "a.example:8080", True),
        ("a.example:8080", "a.example:443", False),
        ("a.example:*", "a.example:22", True),
        ("a.example", "b.a.example:443", False),
        ("a.example", "xa.example:443", False),
        ("a.example", "a.example.evil.example:443", False),
        ("*.a.example", "b.a.example:443", True),
        ("*.a.example", "c.b.a.example:443", True),
        ("*.a.example", "a.example:443", False),
        ("*.a.example", "xa.example:443", False),
        ("*.a.example:8443", "b.a.example:8443", True),
        ("*", "anything.example:443", True),
        ("*", "anything.example:22", False),
        ("*:*", "192.0.2.1:22", True),
        ("192.0.2.1", "192.0.2.1:80", True),
        ("[2001:db8::1]:22", "[2001:db8::1]:22", True),
        ("2001:db8::1", "[2001:db8::1]:443", True),
        ("bücher.example", "xn--bcher-kva.example:443", True),
    ],
)
def test_patterns(pattern: str, target: str, matches: bool) -> None:
    assert Rule.parse(ALLOW, pattern).matches(parse_authority(target)) is matches


@pytest.mark.parametrize(
    "pattern",
    ["", "*.", "**.a", "*a.example", "a.*.example", "a.*", "*.*.a", "https://a.example", "a/b",
     "a.example:0", "a.example:http", "a.example:80-90", "*.127.0.0.1", "127.1", "a b", "*.[::1]"],
)  # fmt: skip
def test_bad_patterns_are_quoted_in_the_error(pattern: str) -> None:
    with pytest.raises(BadRule) as caught:
        Rule.parse(ALLOW, pattern)
    assert repr(pattern) in str(caught.value)


def test_a_deny_rule_without_a_port_covers_every_port() -> None:
    rules = Rules(
        (Rule.parse(ALLOW, "a.example:8443"), Rule.parse(DENY, "a.example")), default=ALLOW
    )
    assert rules.judge(parse_authority("a.example:8443")).effect is DENY
    assert rules.judge(parse_authority("b.example:8443")).effect is ALLOW


def test_an_ask_rule_without_a_port_covers_every_port_too() -> None:
    rules = Rules((Rule.parse(ASK, "a.example"),), default=ALLOW)
    assert rules.judge(parse_authority("a.example:22")).effect is ASK


def test_without_rules_everything_is_denied() -> None:
    assert Rules().judge(parse_authority("a.example:443")) == Verdict(DENY)


def test_a_rule_reads_back_as_it_was_written() -> None:
    for text in ("a.example", "*.a.example:8443", "*", "[2001:db8::1]:22", "a.example:*"):
        rule = Rule.parse(ALLOW, text, "repo")
        assert str(rule) == f"allow {text}"
        assert rule.layer == "repo"


PATTERNS = ["a.example", "*.example", "*", "b.example", "a.example:8443", "*:*"]
TARGETS = [parse_authority(t) for t in ("a.example:443", "b.example:80", "a.example:8443")]
RULE = st.builds(Rule.parse, st.sampled_from(list(Effect)), st.sampled_from(PATTERNS))


@given(st.lists(RULE, max_size=6), st.sampled_from(TARGETS), st.sampled_from(list(Effect)))
def test_deny_beats_ask_beats_allow_in_any_order(
    rules: list[Rule], target: Target, default: Effect
) -> None:
    matching = {rule.effect for rule in rules if rule.matches(target)}
    expected = next((e for e in (DENY, ASK, ALLOW) if e in matching), default)
    for order in itertools.islice(itertools.permutations(rules), 24):
        assert Rules(order, default).judge(target).effect is expected


@given(st.lists(RULE, max_size=6), RULE, st.sampled_from(TARGETS))
def test_adding_a_deny_rule_never_widens(rules: list[Rule], more: Rule, target: Target) -> None:
    if more.effect is not DENY:
        return
    before = Rules(tuple(rules)).judge(target).effect
    after = Rules((*rules, more)).judge(target).effect
    assert after in (before, DENY)
