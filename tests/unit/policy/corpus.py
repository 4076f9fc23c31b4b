"""The bypass corpus as data."""

from pathlib import Path
from typing import NamedTuple

import yaml

from io_harness.workflows.policy import Policy

FILE = Path(__file__).parents[2] / "corpus" / "bypass.yaml"


class Case(NamedTuple):
    group: str
    line: str


def _cases(groups: dict[str, str | list[str]]) -> list[Case]:
    return [
        Case(group, line.replace("␤", "\n"))
        for group, lines in groups.items()
        for line in (lines.split("\n") if isinstance(lines, str) else lines)
    ]


_DATA = yaml.safe_load(FILE.read_text(encoding="utf-8"))
POLICY = Policy.model_validate(_DATA["policy"])
BYPASSES = _cases(_DATA["bypasses"])
UNPROVEN = _cases(_DATA["unproven"])
DESTRUCTIVE = _cases(_DATA["destructive"])
ORDINARY = _cases(_DATA["ordinary"])
