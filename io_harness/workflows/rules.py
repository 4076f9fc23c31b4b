"""Rules of a policy, and the layers in which they stand."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .host_patterns import check_host_pattern, host_matches, normal_host
from .model import Record, Strict
from .patterns import (
    Match,
    PatternError,
    any_path_matches,
    check_command_pattern,
    check_path_pattern,
    command_matches,
    last_names,
    normal_path,
    path_matches,
    words_of,
)

Act = Literal["read", "write", "exec", "net"]
RuleEffect = Literal["allow", "ask", "deny"]
STRICTNESS: dict[RuleEffect, int] = {"allow": 0, "ask": 1, "deny": 2}

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Targets = str | Annotated[tuple[str, ...], Field(min_length=1)]
Example = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class Reason(Record):
    """Which rule decided, and in which layer it stands."""

    effect: RuleEffect
    rule: str
    """The rule as written, or `default`."""
    layer: str


class Rule(Strict):
    """What is to happen to the acts whose targets match."""

    effect: RuleEffect
    act: Act | tuple[Act, ...]
    """One act, or `[read, write]`."""
    target: Targets
    """One or several patterns of paths (read, write), commands (exec) or hosts (net)."""
    unless: tuple[str, ...] = ()
    """Patterns of targets to which the rule does not apply."""
    note: str = Field(default="", max_length=500)
    """Why the rule is there; shown where it decides."""
    match: tuple[Example, ...] = ()
    """Targets that the rule must match; checked when the rule is loaded."""
    no_match: tuple[Example, ...] = ()
    """Targets that the rule must not match; checked when the rule is loaded."""

    @property
    def acts(self) -> tuple[Act, ...]:
        return (self.act,) if isinstance(self.act, str) else self.act

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def text(self) -> str:
        """The rule in one line."""
        return self._line(", ".join(self.targets))

    def applies(self, act: Act, target: str) -> tuple[Match, str]:
        """Whether the rule applies to a normal target (see `normal_target`), and the rule in one line
        with the one of its patterns that says so."""
        wide = self.effect != "allow"
        if act not in self.acts:
            return "no", ""
        if act in ("read", "write") and not self._may_match_path(target, wide):
            return "no", ""
        best: tuple[Match, str] = ("no", "")
        for pattern in self.targets:
            found = _match(act, pattern, target, wide=wide)
            if found != "no" and best[0] != "yes":
                best = (found, self._line(pattern))
        return ("no", "") if best[0] == "no" or self._spares(act, target) else best

    def _may_match_path(self, path: str, wide: bool) -> bool:
        if wide and not any(map(last_names(self.targets), path.split("/"))):
            return False
        return any_path_matches(self.targets, path, wide=wide)

    def _spares(self, act: Act, target: str) -> bool:
        # An exception is read the other way round: a deny is lifted only for certain.
        if self.effect == "allow":
            return any(_match(act, p, target, wide=True) != "no" for p in self.unless)
        return any(_match(act, p, target, wide=False) == "yes" for p in self.unless)

    def _line(self, targets: str) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"{self.effect} {'+'.join(self.acts)} {targets}{note}"

    @model_validator(mode="after")
    def _does_what_it_says(self) -> Self:
        if not self.acts or (len(self.acts) > 1 and not set(self.acts) <= {"read", "write"}):
            raise ValueError("act: one of read, write, exec, net; only read and write share a rule")
        first = next(iter(self.acts))
        for pattern in (*self.targets, *self.unless):
            try:
                _check_pattern(first, pattern)
            except PatternError as error:
                raise ValueError(f"the pattern {pattern!r}: {error}") from None
        for example in self.match:
            if any(self.applies(act, normal_target(act, example))[0] != "yes" for act in self.acts):
                raise ValueError(f"{self.text!r} does not match {example!r}, as `match` says")
        for example in self.no_match:
            if any(self.applies(act, normal_target(act, example))[0] != "no" for act in self.acts):
                raise ValueError(f"{self.text!r} matches {example!r}, against `no_match`")
        return self


class Layer(Strict):
    """Named rules that belong together. Their order doesn't matter."""

    name: Name
    rules: tuple[Rule, ...] = ()


class Defaults(Strict):
    """What happens to targets that no rule matches."""

    read: RuleEffect = "allow"
    write: RuleEffect = "ask"
    exec: RuleEffect = "ask"
    net: RuleEffect = "deny"
    outside: RuleEffect = "ask"
    """Reading or writing outside the workspace, if stricter than `read` and `write`."""
    dynamic: RuleEffect = "ask"
    """Commands of which it can't be known before what they run, if stricter than `exec`."""
    discard: RuleEffect = "ask"
    """Commands that throw away work in the workspace (`git reset --hard`), if stricter."""
    destroy: RuleEffect = "ask"
    """Commands that destroy beyond repair (`rm -rf ~`, `git push --force`), if stricter."""
    mcp: RuleEffect = "ask"
    """Tools of MCP servers: target `<mcp> SERVER TOOL` of act exec."""

    def for_target(self, act: Act, target: str) -> RuleEffect:
        """The default effect of a normal target."""
        own: RuleEffect = getattr(self, act)
        if act in ("read", "write"):
            return stricter(own, self.outside) if target.startswith("/") else own
        if act == "net":
            return own
        first = words_of(target)[0]
        if not first.special:
            return own
        match first.text:
            case "<mcp>":
                return self.mcp
            case "<discard>":
                return stricter(own, self.discard)
            case "<destroy>":
                return stricter(own, self.destroy)
            case _:
                return stricter(own, self.dynamic)


def stricter(one: RuleEffect, other: RuleEffect) -> RuleEffect:
    return one if STRICTNESS[one] >= STRICTNESS[other] else other


def normal_target(act: Act, target: str) -> str:
    """The one form in which targets are compared.

    Raises:
        PatternError: the target has no such form; it is then denied.
    """
    match act:
        case "read" | "write":
            return normal_path(target)
        case "exec":
            if not words_of(target):
                raise PatternError("an empty command")
            return target
        case "net":
            return normal_host(target)


def _check_pattern(act: Act, pattern: str) -> None:
    match act:
        case "read" | "write":
            check_path_pattern(pattern)
        case "exec":
            check_command_pattern(pattern)
        case "net":
            check_host_pattern(pattern)


def _match(act: Act, pattern: str, target: str, *, wide: bool) -> Match:
    match act:
        case "read" | "write":
            return path_matches(pattern, target, wide=wide)
        case "exec":
            return command_matches(pattern, target, wide=wide)
        case "net":
            return host_matches(pattern, target, wide=wide)
