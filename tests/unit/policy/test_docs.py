"""The examples of docs/policy.md do what it says."""

import re
from pathlib import Path

import pytest

from io_harness.activities.gate import CommandLine, Gate
from io_harness.policy_file import parse_policy
from io_harness.workflows.patterns import MARKERS
from io_harness.workflows.policy import policy_of
from io_harness.workflows.presets import PRESETS
from io_harness.workflows.rules import Act

TEXT = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```\n\n```decisions\n(.*?)```", TEXT, re.DOTALL)
DECISIONS = [
    (policy, *line.split(maxsplit=2))
    for policy, decisions in EXAMPLES
    for line in decisions.splitlines()
]


@pytest.mark.parametrize(("policy", "effect", "act", "target"), DECISIONS)
def test_decision(policy: str, effect: str, act: Act, target: str) -> None:
    gate = Gate(parse_policy(policy.encode(), "docs.yaml"))
    asked = CommandLine(target, root=Path("/ws"), home="/home/u") if act == "exec" else target
    assert gate.explain(act, asked).reason.effect == effect


def test_every_example_is_tested() -> None:
    assert len(EXAMPLES) == TEXT.count("```yaml") == TEXT.count("```decisions") == 3
    assert all(marker in TEXT for marker in MARKERS)


WORDS = {"allowed": "allow", "asks": "ask", "ask": "ask", "denied": "deny"}
ROWS = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", TEXT, re.MULTILINE)


def test_the_table_of_presets() -> None:
    rows = {name: [WORDS[cell.strip()] for cell in cells.split("|")] for name, cells in ROWS}
    targets: list[tuple[Act, str]] = [
        ("read", "a.py"), ("write", "a.py"), ("exec", "make"), ("net", "example.com:443"),
        ("read", ".env"),
    ]  # fmt: skip
    assert rows == {
        name: [policy_of(name).explain(*target).effect for target in targets] for name in PRESETS
    }
