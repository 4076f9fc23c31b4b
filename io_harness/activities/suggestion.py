"""The narrowest rule to remember for what was asked."""

import re
from collections.abc import Iterable

from io_harness.workflows.patterns import words_of
from io_harness.workflows.rules import Act, Rule, normal_target

_SUBCOMMANDS = re.compile(
    r"(?:git|npm|pnpm|yarn|bun|deno|cargo|rustup|go|uv|pip|poetry|pdm|hatch|tox|nox|ruff|conda|docker"
    r"|kubectl|make|just|gh|terraform|dotnet|mvn|gradle|bundle|rake|composer)\Z"
)
"""Programs of which the first word says what they do."""


def suggest(asked: Iterable[tuple[Act, str]]) -> Rule | None:
    """The narrowest useful rule under which none of these would have been asked about.

    A command is offered with other arguments only if its program (and sub-command) is named plainly;
    one that destroys, or of which not everything is known, is never offered. None if the acts don't
    fit one rule.
    """
    wanted = list(dict.fromkeys(asked))
    patterns = tuple(dict.fromkeys(_pattern(act, target) for act, target in wanted))
    if not patterns or None in patterns or len({act for act, _ in wanted}) != 1:
        return None
    act = wanted[0][0]
    try:
        rule = Rule(effect="allow", act=act, target=tuple(p for p in patterns if p is not None))
        covered = all(rule.applies(a, normal_target(a, t))[0] == "yes" for a, t in wanted)
    except ValueError:
        return None  # a target that no pattern can spell
    return rule if covered else None


def _pattern(act: Act, target: str) -> str | None:
    match act:
        case "read" | "write":
            escaped = re.sub(r"([*?\[\]\\!])", r"\\\1", target)
            return f"/{escaped}" if target != "." else None
        case "net":
            return target
        case "exec":
            return _command(target)


def _command(target: str) -> str | None:
    words = words_of(target)
    if not words or any(word.special and word.text != "<mcp>" for word in words):
        return None
    quoted = target.split(" ")
    if words[0].special:
        return f"{target} $"
    name = words[0].text
    if name != quoted[0] or len(words) == 1:
        return f"{target} $"
    if _SUBCOMMANDS.match(name) and words[1].text == quoted[1] and not quoted[1].startswith("-"):
        return f"{name} {quoted[1]}"
    return f"{target} $"
