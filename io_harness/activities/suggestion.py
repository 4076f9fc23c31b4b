"""The narrowest rule to remember for what was asked."""

import re
from collections.abc import Iterable

from io_harness.workflows.patterns import words_of
from io_harness.workflows.rules import Act, Rule, normal_target


def suggest(asked: Iterable[tuple[Act, str]]) -> Rule | None:
    """The narrowest rule under which none of these would have been asked about: it names exactly them.

    None if they are of several acts, or if not everything is known of one, or one destroys: what that
    does another time is another thing.
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
            words = words_of(target)
            exact = all(not word.special or word.text == "<mcp>" for word in words)
            return f"{target} $" if exact else None
