"""The laws of the engine, for any policy."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from io_harness.activities.gate import ApprovalNeeded, Gate, Refused
from io_harness.workflows.contract import Approval
from io_harness.workflows.policy import Policy, policy_of
from io_harness.workflows.rules import STRICTNESS, Act, Defaults, Layer, Reason, Rule

ACTS: tuple[Act, ...] = ("read", "write", "exec", "net")
PATTERNS: dict[Act, tuple[str, ...]] = {
    "read": ("**", "*.py", "/src", "src/*", "a", ".env*", "//etc/**", "b/**/a"),
    "write": ("**", "*.py", "/src", "src/*", "a", ".env*", "//etc/**", "b/**/a"),
    "exec": ("*", "git push", "git", "git *", "ls $", "<dynamic>", "<destroy>", "<mcp> a", "g*"),
    "net": ("*", "*.example.com", "example.com", "example.com:22", "*:*"),
}
_PATHS = (
    "a",
    "src/a.py",
    "src/b/a",
    ".ENV",
    "/etc/x",
    "b/c/a",
    ".",
    "../x",
    "/proc/self/root/etc/x",
)
TARGETS: dict[Act, tuple[str, ...]] = {
    "read": _PATHS,
    "write": _PATHS,
    "exec": ("git push", "git -C x push", "git <dynamic>", "ls", "./ls", "<dynamic> x",
             "<destroy> rm -rf /", "<discard> git clean -f", "<mcp> a b", "'", "GIT push"),
    "net": ("example.com:443", "a.example.com:443", "evilexample.com:443", "example.com:22", "x",
            "127.1:80"),
}  # fmt: skip
NO_TARGETS = ("../x", "'", "x", "127.1:80")
"""Denied because they are no targets, not by a rule."""
settings.register_profile("laws", max_examples=60, deadline=None)
LAWS = settings.get_profile("laws")
EFFECTS = st.sampled_from(["allow", "ask", "deny"])


@st.composite
def rules(draw: st.DrawFn, effects: st.SearchStrategy[str] = EFFECTS) -> Rule:
    act = draw(st.sampled_from(ACTS))
    patterns = st.sampled_from(PATTERNS[act])
    return Rule.model_validate(
        {
            "effect": draw(effects),
            "act": act,
            "target": draw(st.lists(patterns, min_size=1, max_size=3)),
            "unless": draw(st.lists(patterns, max_size=1)),
        }
    )


@st.composite
def layers(draw: st.DrawFn) -> tuple[Layer, ...]:
    count = draw(st.integers(0, 3))
    return tuple(
        Layer(name=f"layer {n}", rules=tuple(draw(st.lists(rules(), max_size=4))))
        for n in range(count)
    )


@st.composite
def policies(draw: st.DrawFn, depth: int = 1) -> Policy:
    chosen = draw(st.fixed_dictionaries(dict.fromkeys(Defaults.model_fields, EFFECTS)))
    defaults = draw(st.sampled_from([None, Defaults.model_validate(chosen)]))
    within: tuple[Policy, ...] = ()
    if depth:
        within = tuple(draw(st.lists(policies(depth - 1), max_size=1)))
    return Policy(
        preset=draw(st.sampled_from(["careful", "unattended", "read-only", None])),
        defaults=defaults,
        layers=draw(layers()),
        remembered=tuple(draw(st.lists(rules(), max_size=2))),
        within=within,
    )


acts = st.sampled_from([(act, target) for act in ACTS for target in TARGETS[act]])


def strictness(policy: Policy, act: Act, target: str) -> int:
    return STRICTNESS[policy.explain(act, target).effect]


@LAWS
@given(policies(), rules(st.just("deny")), policies(), acts)
def test_nothing_lifts_a_deny(
    policy: Policy, deny: Rule, more: Policy, act: tuple[Act, str]
) -> None:
    denied = policy.merge(Layer(name="first", rules=(deny,)))
    overlays = (layer.model_copy(update={"name": f"more {layer.name}"}) for layer in more.layers)
    overlaid = denied.merge(*overlays).remember(*more.remembered)
    if act[1] in NO_TARGETS or deny.applies(*act)[0] == "yes":
        assert denied.explain(*act).effect == "deny"
        assert overlaid.explain(*act).effect == "deny"


@LAWS
@given(policies(), policies(), policies(), acts)
def test_contain_never_widens_at_any_depth(
    outer: Policy, middle: Policy, inner: Policy, act: tuple[Act, str]
) -> None:
    contained = outer.contain(middle.contain(inner))
    limit = max(strictness(policy, *act) for policy in (outer, middle, inner))
    assert strictness(contained, *act) == limit
    assert strictness(outer.narrowed(inner), *act) >= strictness(outer, *act)


@LAWS
@given(policies(), st.lists(rules(st.just("allow")), max_size=3), acts)
def test_a_remembered_rule_turns_only_an_ask_into_allow(
    policy: Policy, remembered: list[Rule], act: tuple[Act, str]
) -> None:
    before = policy.explain(*act)
    after = policy.remember(*remembered).explain(*act)
    if before.effect != "ask":
        assert after == before
    else:
        assert after.effect in ("ask", "allow")


@LAWS
@given(policies(), acts)
def test_order_does_not_matter(policy: Policy, act: tuple[Act, str]) -> None:
    effect = policy.explain(*act).effect
    for order in itertools.permutations(policy.layers):
        turned = tuple(
            layer.model_copy(update={"rules": tuple(reversed(layer.rules))}) for layer in order
        )
        shuffled = policy.model_copy(
            update={"layers": turned, "remembered": policy.remembered[::-1]}
        )
        assert shuffled.explain(*act).effect == effect


def enforced(gate: Gate, act: Act, target: str) -> Reason | None:
    """What stopped the act; None if nothing did."""
    try:
        gate.require(act, target, tool="t", arguments={}, preview="p", preview_kind="text")
    except ApprovalNeeded as needed:
        return needed.request.why
    except Refused as refused:
        return refused.reason
    return None


@LAWS
@given(policies(), acts)
def test_explain_is_what_is_enforced(policy: Policy, act: tuple[Act, str]) -> None:
    expected = policy.explain(*act)
    stopped = enforced(Gate(policy), *act)
    assert stopped == (None if expected.effect == "allow" else expected)
    assert Gate(policy).explain(*act).reason == expected


@LAWS
@given(policies(), acts)
def test_where_nobody_can_be_asked_an_ask_is_a_deny(policy: Policy, act: tuple[Act, str]) -> None:
    expected = policy.explain(*act)
    stopped = enforced(Gate(policy, approval=Approval(seconds=0)), *act)
    if expected.effect == "allow":
        assert stopped is None
    else:
        assert stopped is not None
        assert (stopped.effect, stopped.layer) == ("deny", expected.layer)
        assert stopped.rule.startswith(expected.rule)


@LAWS
@given(policies(), acts)
def test_it_survives_json(policy: Policy, act: tuple[Act, str]) -> None:
    again = Policy.model_validate_json(policy.model_dump_json())
    assert again == policy
    assert again.explain(*act) == policy.explain(*act)


@LAWS
@given(policies(), acts)
def test_a_reason_names_a_rule_of_a_layer(policy: Policy, act: tuple[Act, str]) -> None:
    reason = policy.explain(*act)
    named = {"remembered", "built-in", "defaults", "careful", "unattended", "read-only"}

    def layer_names(of: Policy) -> set[str]:
        return {layer.name for layer in of.all_layers}.union(*(layer_names(p) for p in of.within))

    assert reason.layer in named | layer_names(policy)


# --- what the presets say -----------------------------------------------------------------------

PRESETS = [
    # act, target, careful, unattended, read-only
    ("read", "src/a.py", "allow", "allow", "allow"),
    ("read", ".env", "deny", "deny", "deny"),
    ("read", "app/.ENV.production", "deny", "deny", "deny"),
    ("write", "app/.Env.production", "deny", "deny", "deny"),
    ("read", ".env.example", "allow", "allow", "allow"),
    ("read", "/home/u/.ssh/id_ed25519", "deny", "deny", "deny"),
    ("read", "/proc/self/root/home/u/.ssh/config", "deny", "deny", "deny"),
    ("read", "/home/u/.aws/credentials", "deny", "deny", "deny"),
    ("read", "deploy/KEY.PEM", "deny", "deny", "deny"),
    ("read", ".npmrc", "deny", "deny", "deny"),
    ("read", ".pypirc", "deny", "deny", "deny"),
    ("read", "a/.netrc", "deny", "deny", "deny"),
    ("read", ".git/config", "deny", "deny", "deny"),
    ("read", "/usr/include/stdio.h", "ask", "ask", "deny"),
    ("write", "src/a.py", "ask", "allow", "deny"),
    ("write", "/etc/passwd", "ask", "ask", "deny"),
    ("exec", "pytest -q", "ask", "allow", "deny"),
    ("exec", "echo hi", "allow", "allow", "deny"),
    ("exec", "<dynamic> python -c x", "ask", "allow", "deny"),
    ("exec", "<discard> git reset --hard", "ask", "allow", "deny"),
    ("exec", "<destroy> rm -rf /", "ask", "ask", "deny"),
    ("exec", "<mcp> github create_issue", "ask", "allow", "deny"),
    ("net", "example.com:443", "deny", "deny", "deny"),
]


@pytest.mark.parametrize(("act", "target", "careful", "unattended", "read_only"), PRESETS)
def test_presets(act: Act, target: str, careful: str, unattended: str, read_only: str) -> None:
    assert policy_of("careful").explain(act, target).effect == careful
    assert policy_of("unattended").explain(act, target).effect == unattended
    assert policy_of("read-only").explain(act, target).effect == read_only


def test_a_reason_names_the_pattern_that_decided() -> None:
    assert policy_of("careful").explain("read", "a/server.pem") == Reason(
        effect="deny", rule="deny read+write *.pem", layer="secrets"
    )
    assert policy_of("careful").explain("write", "a") == Reason(
        effect="ask", rule="default", layer="careful"
    )


def test_a_rule_that_does_not_do_what_its_author_said_is_no_rule() -> None:
    with pytest.raises(ValidationError, match="does not match 'git status', as `match` says"):
        Rule(effect="deny", act="exec", target="git push", match=("git status",))
    with pytest.raises(ValidationError, match="matches 'git push x', against `no_match`"):
        Rule(effect="deny", act="exec", target="git push", no_match=("git push x",))
    with pytest.raises(ValidationError, match="only read and write share a rule"):
        Rule(effect="deny", act=("read", "exec"), target="a")
    with pytest.raises(ValidationError, match="'\\[a': an opening \\["):
        Rule(effect="deny", act="read", target="[a")


def test_layer_names_are_unique_and_not_taken() -> None:
    for name in ("secrets", "remembered"):
        with pytest.raises(ValidationError, match="a reason must name one"):
            Policy(layers=(Layer(name=name),))


def test_home_is_replaced_in_patterns() -> None:
    rule = Rule(
        effect="allow", act="read", target="~/data", match=("~/data/x",), no_match=("data",)
    )
    policy = Policy(layers=(Layer(name="data", rules=(rule,)),)).at_home("/home/u")
    assert policy.explain("read", "/home/u/data/x").effect == "allow"
    assert policy.explain("read", "/home/v/data/x").effect == "ask"


def test_an_exception_is_read_the_other_way_round() -> None:
    deny = Rule(effect="deny", act="read", target="*.key", unless=("test.key",))
    policy = Policy(preset=None, layers=(Layer(name="keys", rules=(deny,)),))
    assert policy.explain("read", "test.key").effect == "allow"
    assert policy.explain("read", "TEST.key").effect == "deny"
    assert policy.explain("read", "/outside/test.key").effect == "deny"


@LAWS
@given(policies(), st.sampled_from(_PATHS))
def test_hidden_is_what_is_denied(policy: Policy, path: str) -> None:
    if path not in NO_TARGETS and not path.startswith("/proc"):
        assert policy.hidden_paths()(path) == (policy.explain("read", path).effect == "deny")
