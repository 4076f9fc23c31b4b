"""What a server may reach: the run's policy, as the egress decision asks it."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from io_harness import sandbox
from io_harness.activities.gate import Gate
from io_harness.sandbox.egress import Effect, Network, Proxy, Session, Target, Verdict
from io_harness.sandbox.network import through_proxy
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Rule


@dataclass(frozen=True)
class PolicyJudge:
    """Judges hosts by the gate. An address that a rule names is opened, also a private one."""

    policy: Policy
    gate: Gate

    @property
    def opened(self) -> tuple[Network, ...]:
        return tuple(_opened(self.policy))

    def judge(self, target: Target) -> Verdict:
        """What the policy says of the target."""
        reason = self.gate.explain("net", str(target)).reason
        return Verdict(Effect(reason.effect), reason.rule, reason.layer)


def reaches_nothing(policy: Policy) -> bool:
    """Whether no rule and no default of the policy could ever allow a connection."""
    permits = policy.all_defaults.net != "deny" or any(
        rule.effect != "deny" for rule in _net_rules(policy)
    )
    return not permits or any(reaches_nothing(bound) for bound in policy.within)


def sandbox_net(policy: Policy, session: Session, proxy: Proxy) -> sandbox.Net:
    """The network of a server in the sandbox: none, or the egress proxy."""
    return sandbox.NetNone() if reaches_nothing(policy) else through_proxy(proxy, session)


def _net_rules(policy: Policy) -> Iterator[Rule]:
    for layer in policy.all_layers:
        yield from (rule for rule in layer.rules if "net" in rule.acts)
    yield from (rule for rule in policy.remembered if "net" in rule.acts)


def _opened(policy: Policy) -> Iterator[Network]:
    # Of bounds only the outermost opens anything: the others narrow, and may come from the workspace.
    for outermost in policy.within[:1]:
        yield from _opened(outermost)
    for rule in _net_rules(policy):
        for pattern in rule.targets if rule.effect != "deny" else ():
            host = pattern if pattern.count(":") > 1 else pattern.partition(":")[0]
            if host.startswith("["):
                host = host[1:].partition("]")[0]
            try:
                yield ipaddress.ip_network(host)
            except ValueError:
                continue  # a name, which opens nothing
