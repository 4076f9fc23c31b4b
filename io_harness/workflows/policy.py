"""The policy: what an agent may read, write, execute and reach, decided by code.

Pure. `explain` is the function that enforces; nothing else decides.
"""

from collections.abc import Callable
from typing import Annotated, Self

from pydantic import Field, model_validator

from .model import Strict
from .patterns import PatternError
from .presets import PRESETS, PresetName
from .rules import STRICTNESS, Act, Defaults, Layer, Reason, Rule, normal_target

REMEMBERED = "remembered"
"""Layer of the rules that humans added while they decided."""

_ALL_ALLOWED = Defaults(
    read="allow", write="allow", exec="allow", net="allow", outside="allow", dynamic="allow",
    discard="allow", destroy="allow", mcp="allow",
)  # fmt: skip


class Policy(Strict):
    """Layers of rules over a preset, and a default per act.

    Evaluation: any matching deny, then any ask, then any allow, then the default; neither the order
    of layers nor how specific a rule is counts.
    """

    preset: PresetName | None = "careful"
    """Brings its defaults and its layer of secret files; None brings neither."""
    defaults: Defaults | None = None
    """Instead of the preset's."""
    layers: tuple[Layer, ...] = ()
    remembered: tuple[Rule, ...] = ()
    """Turn an ask into allow, or anything into deny. They never lift a deny, a default one included."""
    within: Annotated[tuple["Policy", ...], Field(max_length=64)] = ()
    """Bounds: the strictest of this policy and of each bound holds."""

    @model_validator(mode="after")
    def _layer_names_are_unique(self) -> Self:
        names = [layer.name for layer in self.all_layers]
        for name in names:
            if names.count(name) > 1 or name == REMEMBERED:
                raise ValueError(f"two layers are named {name!r}; a reason must name one")
        return self

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        """The preset's layers and the own ones."""
        return (*(PRESETS[self.preset].layers if self.preset else ()), *self.layers)

    @property
    def all_defaults(self) -> Defaults:
        if self.defaults is not None:
            return self.defaults
        return PRESETS[self.preset].defaults if self.preset else Defaults()

    def explain(self, act: Act, target: str) -> Reason:
        """What happens to this act on this target, by which rule of which layer.

        `target` is a resolved path (relative to the workspace, absolute outside it), a simple command
        as shell words, or a canonical host:port. A target that is none of these is denied.
        """
        try:
            normal = normal_target(act, target)
        except PatternError as error:
            return Reason(effect="deny", rule=f"not a target: {error}", layer="built-in")
        return self._decide(act, normal)

    def hidden_paths(self) -> Callable[[str], bool]:
        """Whether reading a normal path is denied: `explain` prepared for many paths."""
        if self._may_deny_by_default():
            return lambda path: self._decide("read", path).effect == "deny"
        rules = self._read_denies()
        return lambda path: any(rule.applies("read", path)[0] == "yes" for rule in rules)

    def _read_denies(self) -> tuple[Rule, ...]:
        own = [rule for layer in self.all_layers for rule in layer.rules]
        denies = [r for r in (*own, *self.remembered) if r.effect == "deny" and "read" in r.acts]
        return (*denies, *(rule for bound in self.within for rule in bound._read_denies()))

    def _may_deny_by_default(self) -> bool:
        defaults = self.all_defaults
        own = "deny" in (defaults.read, defaults.outside)
        return own or any(bound._may_deny_by_default() for bound in self.within)

    def merge(self, *layers: Layer) -> "Policy":
        """Add layers. Their allow rules can lift an ask or deny that was a default, never one that was
        a rule."""
        return _checked(self, layers=(*self.layers, *layers))

    def contain(self, inner: "Policy") -> "Policy":
        """The inner policy as far as this one permits: never wider than either, at any depth."""
        return Policy(preset=None, defaults=_ALL_ALLOWED, within=(self, inner))

    def narrowed(self, found: "Policy") -> "Policy":
        """Take on a policy from a source that isn't trusted. Where its rules, or defaults that it sets
        itself, are stricter than this policy, they count; nothing else in it does."""
        preset = found.preset if "preset" in found.model_fields_set else None
        defaults = found.defaults or (None if preset else _ALL_ALLOWED)
        inner = Policy(preset=preset, defaults=defaults, layers=found.layers, within=found.within)
        return self.contain(inner)

    def remember(self, *rules: Rule) -> "Policy":
        """Add rules that a human gave along with a decision."""
        return _checked(self, remembered=(*self.remembered, *rules))

    def at_home(self, home: str) -> "Policy":
        """The policy with `~/` in patterns replaced by the absolute folder `home`."""
        layers = tuple(
            layer.model_copy(update={"rules": tuple(_at_home(r, home) for r in layer.rules)})
            for layer in self.layers
        )
        return self.model_copy(
            update={
                "layers": layers,
                "remembered": tuple(_at_home(rule, home) for rule in self.remembered),
                "within": tuple(policy.at_home(home) for policy in self.within),
            }
        )

    def _decide(self, act: Act, target: str) -> Reason:
        reason = max(
            (*(bound._decide(act, target) for bound in self.within), self._own(act, target)),
            key=lambda r: STRICTNESS[r.effect],
        )
        for rule in self.remembered:
            found, line = rule.applies(act, target)
            if found == "yes" and rule.effect == "deny":
                return Reason(effect="deny", rule=line, layer=REMEMBERED)
            if found == "yes" and rule.effect == "allow" and reason.effect == "ask":
                reason = Reason(effect="allow", rule=line, layer=REMEMBERED)
        return reason

    def _own(self, act: Act, target: str) -> Reason:
        found: Reason | None = None
        for layer in self.all_layers:
            for rule in layer.rules:
                matched, line = rule.applies(act, target)
                if matched == "no" or (matched == "maybe" and rule.effect == "allow"):
                    continue
                # What a deny may mean, a human decides.
                effect = "ask" if matched == "maybe" else rule.effect
                if found is None or STRICTNESS[effect] > STRICTNESS[found.effect]:
                    found = Reason(effect=effect, rule=line, layer=layer.name)
                if effect == "deny":
                    return found
        if found is not None:
            return found
        effect = self.all_defaults.for_target(act, target)
        return Reason(effect=effect, rule="default", layer=self.preset or "defaults")


def _checked(policy: Policy, **update: object) -> Policy:
    return Policy.model_validate({**dict(policy), **update})


def _at_home(rule: Rule, home: str) -> Rule:
    if not set(rule.acts) <= {"read", "write"}:
        return rule

    def moved(patterns: tuple[str, ...]) -> tuple[str, ...]:
        folder = home.rstrip("/")
        return tuple(f"/{folder}/{p[2:]}" if p.startswith("~/") else p for p in patterns)

    # Not validated again: the examples were written for the patterns as written.
    return rule.model_copy(update={"target": moved(rule.targets), "unless": moved(rule.unless)})


def net_rules(policy: Policy) -> tuple[Rule, ...]:
    """The policy's own rules about hosts, remembered ones included; those of its bounds are not."""
    own = [rule for layer in policy.all_layers for rule in layer.rules]
    return tuple(rule for rule in (*own, *policy.remembered) if "net" in rule.acts)


def may_reach_network(policy: Policy) -> bool:
    """Whether there could be a host that the policy allows, or asks about. Never False for a policy
    under which a connection could be made."""
    rules = net_rules(policy)
    everywhere = {"*", "*:*"}
    if any(r.effect == "deny" and not r.unless and everywhere & {*r.targets} for r in rules):
        return False
    permits = policy.all_defaults.net != "deny" or any(r.effect != "deny" for r in rules)
    return permits and all(may_reach_network(bound) for bound in policy.within)


def names_host(policy: Policy, host: str) -> bool:
    """Whether a rule that allows or asks names just this host, not by a wildcard. Of a policy that was
    contained or narrowed, the containing one must."""
    named = any(
        host in (pattern, pattern.rpartition(":")[0])
        for rule in net_rules(policy)
        for pattern in (rule.targets if rule.effect != "deny" else ())
    )
    return named or (bool(policy.within) and names_host(policy.within[0], host))


PolicySpec = PresetName | Policy
"""A preset's name, or a policy."""


def policy_of(spec: PolicySpec) -> Policy:
    return Policy(preset=spec) if isinstance(spec, str) else spec
