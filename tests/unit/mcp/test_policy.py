"""What the policy says of servers: of their network, and of when their list is due."""

import pytest

from io_harness.activities.gate import Gate
from io_harness.activities.mcp.egress import PolicyJudge, reaches_nothing
from io_harness.sandbox.egress import Effect, Target, canonical_host
from io_harness.workflows.mcp import McpSource, McpState, McpTools
from io_harness.workflows.policy import Policy
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
    ],
)
def test_a_server_gets_a_network_only_where_some_host_could_be_allowed(
    given: Policy, nothing: bool
) -> None:
    assert reaches_nothing(given) is nothing


def test_the_judge_says_what_the_gate_says_and_opens_the_addresses_that_are_named() -> None:
    given = policy(net("allow", "example.org", "10.0.0.7:8080", "[fd00::1]:80"), net("deny", "a.b"))
    judge = PolicyJudge(given, Gate(given))
    assert sorted(map(str, judge.opened)) == ["10.0.0.7/32", "fd00::1/128"]
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
    assert PolicyJudge(trusted.narrowed(names), Gate(trusted)).opened == ()
    assert len(PolicyJudge(names.narrowed(trusted), Gate(names)).opened) == 1


def listed(*seconds: float | None) -> McpTools:
    return McpTools(
        servers=tuple(
            McpSource(id=f"s{n}", protocol="p", software="s", refresh_seconds=each)
            for n, each in enumerate(seconds)
        )
    )


@pytest.mark.parametrize(
    ("state", "now", "due"),
    [
        (McpState(), 0.0, True),
        (McpState(tools=listed(None), listed_at=0), 1e9, False),
        (McpState(tools=listed(None), stale=True), 0.0, True),
        (McpState(tools=listed(60, 20, None), listed_at=100), 119.0, False),
        (McpState(tools=listed(60, 20, None), listed_at=100), 120.0, True),
    ],
)
def test_the_list_is_due_first_when_it_changed_and_when_its_time_is_over(
    state: McpState, now: float, due: bool
) -> None:
    assert state.due(now) is due


def test_the_digest_of_a_list_is_of_its_content() -> None:
    assert listed(1).digest == listed(1).digest != listed(2).digest
    assert McpTools.model_validate_json(listed(1).model_dump_json()).digest == listed(1).digest
