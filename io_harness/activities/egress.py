"""The run's policy as the judge of network connections."""

import ipaddress
from dataclasses import dataclass, field

from io_harness.sandbox.egress import Effect, Network, Target, Verdict
from io_harness.sandbox.egress.hosts import address_of
from io_harness.workflows.policy import Policy, names_host
from io_harness.workflows.rules import Layer, Reason, Rule

from .gate import Gate

PROVIDER = "provider"
"""Layer of the rule that lets the worker reach the model's provider."""

EVERYWHERE: tuple[Network, ...] = (
    ipaddress.ip_network("0.0.0.0/0"),
    ipaddress.ip_network("::/0"),
)


@dataclass(frozen=True)
class PolicyJudge:
    """Asks `Policy.explain`, so that the proxy and the worker's own connections obey the very policy
    that everything else obeys.

    Attributes:
        written: Targets that a person wrote out in full, host and port: they are reached at
            whatever address they have, a private one or loopback included.
    """

    policy: Policy
    written: frozenset[Target] = field(default=frozenset())

    def judge(self, target: Target) -> Verdict:
        return verdict(self.policy.explain("net", str(target)))

    def opens(self, target: Target) -> tuple[Network, ...]:
        return EVERYWHERE if target in self.written else opened(self.policy, target)


@dataclass(frozen=True)
class GateJudge:
    """Asks the gate, which also knows whether anybody can be asked."""

    gate: Gate

    def judge(self, target: Target) -> Verdict:
        return verdict(self.gate.explain("net", str(target)).reason)

    def opens(self, target: Target) -> tuple[Network, ...]:
        return opened(self.gate.policy, target)


def verdict(reason: Reason) -> Verdict:
    """A policy's reason in the words of the proxy."""
    rule = None if reason.rule == "default" else reason.rule
    return Verdict(Effect(reason.effect), rule, reason.layer)


def opened(policy: Policy, target: Target) -> tuple[Network, ...]:
    """An address that a rule names is opened to those who ask for it by that address, also a private
    one; a name that leads to it is not."""
    address = address_of(target.host)
    if address is None:
        return ()
    spelled = f"[{target.host}]" if address.version == 6 else target.host
    return (ipaddress.ip_network(address),) if names_host(policy, spelled) else ()


def with_provider(policy: Policy, *targets: Target) -> Policy:
    """The policy with a layer that allows the provider's hosts, and so in each of its bounds. It lifts
    what denies by default; a deny rule of any layer, at any depth, still beats it."""
    hosts = tuple(str(target) for target in targets)
    rule = Rule(effect="allow", act="net", target=hosts, note="the model's provider")
    own = [layer for layer in policy.layers if layer.name == PROVIDER]
    layer = Layer(name=PROVIDER, rules=(*(r for found in own for r in found.rules), rule))
    return policy.model_copy(
        update={
            "layers": (*(found for found in policy.layers if found not in own), layer),
            "within": tuple(with_provider(bound, *targets) for bound in policy.within),
        }
    )
