import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from io_harness.activities.providers.base import Failure
from io_harness.cli.exits import Exit, exit_of
from io_harness.trace import EndedStep
from io_harness.workflows.result import Outcome, RunResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ended(outcome: Outcome, code: str | None = None) -> EndedStep:
    result = RunResult(outcome=outcome, reason="", code=code)
    return EndedStep(at=NOW, status="completed", result=result)


def test_every_outcome_has_an_exit_code() -> None:
    codes = {outcome: exit_of(ended(outcome)) for outcome in Outcome}
    assert {o for o, c in codes.items() if c == Exit.OK} == {Outcome.SUCCESS, Outcome.FINISHED}
    assert codes[Outcome.DENIED] == codes[Outcome.APPROVAL_EXPIRED] == Exit.DENIED
    assert codes[Outcome.COST_BUDGET_EXCEEDED] == Exit.UNVERIFIED
    assert codes[Outcome.CANCELLED] == Exit.CANCELLED


@pytest.mark.parametrize("failure", list(Failure))
def test_a_provider_s_failure_is_told_apart(failure: Failure) -> None:
    assert exit_of(ended(Outcome.ESCALATED, failure.value)) == Exit.PROVIDER


def test_a_run_that_could_not_begin() -> None:
    refused = EndedStep(at=NOW, status="failed", result=None, code="MissingCredential")
    assert exit_of(refused) == Exit.PROVIDER
    invalid = EndedStep(at=NOW, status="failed", result=None, code="InvalidContract")
    assert exit_of(invalid) == Exit.USAGE


def test_codes_are_distinct() -> None:
    assert len({int(code) for code in Exit}) == len(Exit.__members__)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SandboxUnusable", Exit.SANDBOX),
        ("SandboxTooWeak", Exit.SANDBOX),
        ("SourceNotFound", Exit.WORKSPACE),
        ("LandConflict", Exit.WORKSPACE),
        ("BadPolicy", Exit.USAGE),
        ("CriterionErrored", Exit.FAILED),
        (None, Exit.FAILED),
    ],
)
def test_other_failures(code: str | None, expected: Exit) -> None:
    assert exit_of(ended(Outcome.ESCALATED, code)) == expected


def test_the_readme_lists_every_code() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    table = readme.partition("## Exit codes")[2].partition("##")[0]
    listed = {int(found) for found in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert listed == {int(code) for code in Exit}
