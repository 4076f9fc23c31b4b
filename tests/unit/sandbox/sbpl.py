"""A small reader and evaluator of SBPL profiles: enough for those that we write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Expression = str | list["Expression"]
_TOKEN = re.compile(r'\s*(?:(\()|(\))|"((?:[^"\\]|\\.)*)"|([^\s()"]+))')


def parse(text: str) -> list[Expression]:
    stack: list[list[Expression]] = [[]]
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        assert match, text[at : at + 40]
        at = match.end()
        opened, closed, string, word = match.groups()
        if opened:
            stack.append([])
        elif closed:
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(string if string is not None else word)
    assert len(stack) == 1, "unbalanced"
    return stack[0]


@dataclass(frozen=True)
class Profile:
    rules: list[Expression]
    parameters: Mapping[str, str]

    def allows(self, operation: str, target: str) -> bool:
        """The last rule that matches decides."""
        verdict = False
        for rule in self.rules:
            assert isinstance(rule, list)
            action, *rest = rule
            if action not in ("allow", "deny"):
                continue
            operations = [word for word in rest if isinstance(word, str)]
            filters = [word for word in rest if isinstance(word, list)]
            if any(self._names(word, operation) for word in operations) and (
                not filters or any(self._matches(each, target) for each in filters)
            ):
                verdict = action == "allow"
        return verdict

    @staticmethod
    def _names(pattern: str, operation: str) -> bool:
        if pattern == "default":
            return True
        return operation == pattern or (
            pattern.endswith("*") and operation.startswith(pattern.removesuffix("*"))
        )

    def _matches(self, condition: list[Expression], target: str) -> bool:
        kind, value = condition[0], self._value(condition[1])
        if kind == "literal":
            return target == value
        if kind == "subpath":
            return target == value or target.startswith(value.rstrip("/") + "/")
        if kind == "remote":
            return target == condition[2]
        return kind == "global-name" and target == value

    def _value(self, expression: Expression) -> str:
        if isinstance(expression, str):
            return expression
        assert expression[0] == "param"
        name = expression[1]
        assert isinstance(name, str)
        return self.parameters[name]
