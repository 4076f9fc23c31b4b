"""The table of raw requests, each held against its decision and its control."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .cases import CASES, Case
from .namespaces import in_new, why_not

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    command = in_new(sys.executable, "-m", "tests.integration.egress.world")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}


def test_the_names_of_the_cases_are_distinct_and_many() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_decision_is_right(case: Case, outcomes: dict[str, Any]) -> None:
    outcome = outcomes[case.name]["outcome"]
    refusals = [reason for allowed, reason, _, _ in outcome["rows"] if not allowed]
    assert refusals == ([case.reason] if case.reason else []), outcome
    assert outcome["status"] == (case.status or None), outcome
    assert case.got.decode("latin-1") in outcome["got"], outcome
    assert case.reached.decode("latin-1") in outcome["reached"], outcome
    if case.sent.rules != "open":
        assert outcome["forbidden"] == 0, outcome


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.reason], ids=lambda case: case.name
)
def test_the_control_of_a_refusal_gets_through(case: Case, outcomes: dict[str, Any]) -> None:
    control = outcomes[case.name]["control"]
    assert [allowed for allowed, _, _, _ in control["rows"]] == [True], control
    assert control["connections"] == 1, control
    assert control["got"], control
