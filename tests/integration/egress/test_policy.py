"""The policy as judge: it and the proxy's own rules mean the same by the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.egress import PROVIDER, PolicyJudge, with_provider
from io_harness.sandbox.egress import Allowed, Denied, Effect, Reason, Rule, Rules, decide
from io_harness.sandbox.egress.hosts import parse_authority
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Defaults, Layer
from io_harness.workflows.rules import Rule as PolicyRule
from tests.unit.egress.resolvers import Answers

PATTERNS = [
    "a.example", "*.a.example", "*", "a.example:8443", "a.example:*", "*:*", "*.example:22",
    "192.0.2.1", "[2001:db8::1]:443", "xn--bcher-kva.example",
]  # fmt: skip
TARGETS = [
    "a.example:443", "a.example:8443", "b.a.example:80", "xa.example:443", "example:443",
    "192.0.2.1:80", "192.0.2.1:22", "[2001:db8::1]:443", "xn--bcher-kva.example:80", "c.example:22",
]  # fmt: skip
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
TEXTS = st.lists(st.tuples(EFFECTS, st.sampled_from(PATTERNS)), max_size=5)
NAMES = Answers({"api.example": ["1.1.1.1"], "a.example": ["1.1.1.1"]})
API = parse_authority("api.example:443")


def policy_of(*texts: tuple[str, str], net: str = "deny") -> Policy:
    rules = tuple(
        PolicyRule.model_validate({"effect": e, "act": "net", "target": p}) for e, p in texts
    )
    defaults = Defaults.model_validate({"net": net})
    return Policy(preset=None, defaults=defaults, layers=(Layer(name="run", rules=rules),))


@given(TEXTS, EFFECTS)
def test_a_policy_and_rules_of_the_same_words_agree(
    texts: list[tuple[str, str]], default: str
) -> None:
    judge = PolicyJudge(policy_of(*texts, net=default))
    rules = Rules(tuple(Rule.parse(Effect(e), p) for e, p in texts), Effect(default))
    for text in TARGETS:
        target = parse_authority(text)
        assert judge.judge(target).effect is rules.judge(target).effect, text


async def test_a_refusal_names_the_policys_rule_and_layer() -> None:
    judge = PolicyJudge(policy_of(("deny", "a.example"), ("allow", "*")))
    decision = await decide("A.EXAMPLE.", 443, judge, NAMES)
    assert str(decision) == (
        "a.example:443 refused, denied by rule (rule: deny net a.example, layer: run)"
    )
    default = await decide("a.example", 443, PolicyJudge(policy_of()), NAMES)
    assert isinstance(default, Denied)
    assert default.reason is Reason.NO_RULE


async def test_the_provider_layer_lifts_a_default_and_never_a_deny() -> None:
    allowed = await decide("api.example", 443, PolicyJudge(with_provider(policy_of(), API)), NAMES)
    assert isinstance(allowed, Allowed)
    assert allowed.verdict.layer == PROVIDER
    for denied in ("api.example", "*.example", "*"):
        judge = PolicyJudge(with_provider(policy_of(("deny", denied)), API))
        decision = await decide("api.example", 443, judge, NAMES)
        assert isinstance(decision, Denied)
        assert decision.reason is Reason.DENIED_BY_RULE
    bounded = policy_of().contain(with_provider(policy_of(), API))
    assert isinstance(await decide("api.example", 443, PolicyJudge(bounded), NAMES), Denied)


@pytest.mark.parametrize("opened", [False, True])
async def test_a_policy_does_not_lift_the_address_table_but_a_target_that_was_written_out_does(
    opened: bool,
) -> None:
    local = parse_authority("localhost:11434")
    written = frozenset({local}) if opened else frozenset()
    judge = PolicyJudge(with_provider(policy_of(), local), written)
    decision = await decide("localhost", 11434, judge, Answers({"localhost": ["127.0.0.1"]}))
    assert isinstance(decision, Allowed if opened else Denied)
