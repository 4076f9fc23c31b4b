"""What of the network a policy leaves, and which private addresses it opens."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from io_harness.activities.egress import GateJudge, PolicyJudge, with_provider
from io_harness.activities.gate import Gate
from io_harness.sandbox.egress import Effect, Target, canonical_host
from io_harness.workflows.policy import Policy, may_reach_network
from io_harness.workflows.rules import Defaults, Layer, Rule


def policy(*rules: Rule, preset: str = "unattended") -> Policy:
    return Policy.model_validate(
        {"preset": preset, "layers": [Layer(name="t", rules=rules)] if rules else []}
    )


def net(effect: str, *targets: str) -> Rule:
    return Rule.model_validate({"effect": effect, "act": "net", "target": targets})


ALL = policy(net("allow", "*"))


@pytest.mark.parametrize(
    ("given", "nothing"),
    [
        (policy(), True),
        (policy(net("deny", "*")), True),
        (policy(net("allow", "example.org")), False),
        (policy(net("ask", "example.org")), False),
        (Policy(preset=None, defaults=Defaults(net="ask")), False),
        (policy(net("allow", "example.org")).contain(ALL), False),
        (policy().contain(ALL), True),
        (policy(net("allow", "example.org"), net("deny", "*")), True),
        (policy(net("allow", "example.org"), net("deny", "*:443")), False),
        (policy().remember(net("allow", "example.org")), False),  # it could only lift an ask
    ],
)
def test_there_is_a_network_only_where_some_host_could_be_allowed(
    given: Policy, nothing: bool
) -> None:
    assert may_reach_network(given) is not nothing


def test_the_judge_says_what_the_gate_says_and_opens_the_addresses_that_are_named() -> None:
    given = policy(net("allow", "example.org", "10.0.0.7:8080", "[fd00::1]:80"), net("deny", "a.b"))
    judge = GateJudge(Gate(given))
    for host, networks in (
        ("10.0.0.7", ["10.0.0.7/32"]),
        ("fd00::1", ["fd00::1/128"]),
        ("10.0.0.8", []),
        ("example.org", []),
    ):
        opened = judge.opens(Target(canonical_host(host), 8080))
        assert [str(network) for network in opened] == networks, host
    for host, port, effect in (
        ("example.org", 443, Effect.ALLOW),
        ("example.org", 22, Effect.DENY),
        ("10.0.0.7", 8080, Effect.ALLOW),
        ("10.0.0.7", 80, Effect.DENY),
        ("fd00::1", 80, Effect.ALLOW),
        ("a.b", 443, Effect.DENY),
        ("other.org", 443, Effect.DENY),
    ):
        verdict = judge.judge(Target(canonical_host(host), port))
        assert verdict.effect is effect, host


def test_a_policy_that_only_narrows_opens_no_address() -> None:
    names = policy(net("allow", "10.0.0.7:80"))
    trusted = policy(net("allow", "*"))
    address = Target(canonical_host("10.0.0.7"), 80)
    assert PolicyJudge(trusted.narrowed(names)).opens(address) == ()
    assert len(PolicyJudge(names.narrowed(trusted)).opens(address)) == 1


EFFECTS = st.sampled_from(["allow", "ask", "deny"])
HOSTS = ["a.example:443", "a.example:8443", "b.a.example:80", "192.0.2.1:80", "[2001:db8::1]:443"]
PATTERNS = ["a.example", "*.a.example", "*", "*:*", "a.example:8443", "192.0.2.1", "*:80"]


@st.composite
def policies(draw: st.DrawFn, depth: int = 2) -> Policy:
    rules = st.lists(st.builds(net, EFFECTS, st.sampled_from(PATTERNS)), max_size=3)
    bounds = draw(st.lists(policies(depth - 1), max_size=2)) if depth else []
    return Policy(
        preset=None,
        defaults=Defaults.model_validate({"net": draw(EFFECTS)}),
        layers=(Layer(name="t", rules=tuple(draw(rules))),),
        remembered=tuple(draw(rules)),
        within=tuple(bounds),
    )


@for_all(policies())
def test_a_policy_that_may_not_reach_the_network_denies_every_host(given: Policy) -> None:
    if not may_reach_network(given):
        assert {given.explain("net", host).effect for host in HOSTS} == {"deny"}


@for_all(policies())
def test_the_provider_is_denied_by_rules_alone(given: Policy) -> None:
    """At any depth a deny rule beats the provider's layer, and what denies by default doesn't."""
    target = Target(canonical_host("a.example"), 443)
    reason = with_provider(given, target).explain("net", str(target))
    assert (reason.effect == "deny") is _denied_by_rule(given, str(target))
    assert reason.rule != "default"


def _denied_by_rule(given: Policy, target: str) -> bool:
    own = [rule for layer in given.all_layers for rule in layer.rules]
    denies = [rule for rule in (*own, *given.remembered) if rule.effect == "deny"]
    here = any(rule.applies("net", target)[0] == "yes" for rule in denies)
    return here or any(_denied_by_rule(bound, target) for bound in given.within)
