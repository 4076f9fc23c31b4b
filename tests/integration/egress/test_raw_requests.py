"""The table of raw requests, each held against its decision and its control."""

from typing import Any

import pytest

from .cases import CASES, Case
from .conftest import SECONDS, Table
from .namespaces import why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.timeout(SECONDS + 50),
]


@pytest.fixture(scope="module")
def outcomes(table: Table) -> dict[str, Any]:
    return table("world")


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
