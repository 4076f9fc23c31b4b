"""The run's policy as the judge of network connections."""

from dataclasses import dataclass, field

from io_harness.sandbox.egress import Effect, Network, Target, Verdict
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule

PROVIDER = "provider"
"""Layer of the rule that lets the worker reach the model's provider."""


@dataclass(frozen=True)
class PolicyJudge:
    """Asks `Policy.explain`, so that the proxy and the worker's own connections obey the very policy
    that everything else obeys."""

    policy: Policy
    opened: tuple[Network, ...] = field(default=())

    def judge(self, target: Target) -> Verdict:
        reason = self.policy.explain("net", str(target))
        rule = None if reason.rule == "default" else reason.rule
        return Verdict(Effect(reason.effect), rule, reason.layer)


def with_provider(policy: Policy, *targets: Target) -> Policy:
    """The policy with a layer that allows the provider's hosts. A deny rule of any layer still beats
    it, and so does the bound of a run that started this one."""
    hosts = tuple(str(target) for target in targets)
    rule = Rule(effect="allow", act="net", target=hosts, note="the model's provider")
    return policy.merge(Layer(name=PROVIDER, rules=(rule,)))
