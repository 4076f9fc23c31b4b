"""A criterion that another model judges, on the real server."""

from pathlib import Path

import pytest

from io_harness.workflows.result import Outcome, RunResult
from tests.scripted import Turn, call, turn, verdict, write_review

from .conftest import BROKEN, VERIFY, Repo, Start
from .test_outcomes import fix


def reviewer(folder: Path, *replies: Turn, shows: tuple[str, ...] = ()) -> dict[str, object]:
    """A criterion: the tests, and a review."""
    review = write_review(folder / "reviewer.yaml", *replies, shows=shows)
    return {"kind": "all_of", "checks": [review, VERIFY]}


def checks(result: RunResult) -> list[tuple[str, str]]:
    assert result.verification is not None
    assert not result.verification.change
    return [(check.kind, check.verdict) for check in result.verification.checks]


async def test_work_lands_when_another_model_finds_no_fault(
    start: Start, repo: Repo, tmp_path: Path
) -> None:
    run = await start(
        turn(call("finish", summary="x", fails=True, shows=("Verification failed",))),
        turn(fix(), call("finish", summary="x", fails=True, shows=("add has no docstring",))),
        turn(
            call(
                "edit_file", path="calc.py", old="def add(a, b):",
                new='def add(a, b):\n    """The sum."""',
            ),
            call("finish", summary="x", shows=("passed",)),
        ),
        verification=reviewer(
            tmp_path,
            verdict(False, "add has no docstring"),
            verdict(True, "it has one now"),
            shows=("Make add right.", "+    return a + b"),
        ),
    )  # fmt: skip
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert checks(result) == [("command", "passed"), ("review", "passed")]
    assert '"""The sum."""' in repo.read("calc.py")
    assert result.spend.steps == 5
    assert result.spend.usage.total == 5 * 120
    assert [model.name for model in result.models] == ["script", "reviewer"]


async def test_a_review_is_within_the_budget(start: Start, repo: Repo, tmp_path: Path) -> None:
    run = await start(
        turn(fix(), call("finish", summary="x")),
        verification=reviewer(tmp_path, verdict(True, "fine")),
        budget={"steps": 1},
    )
    result = await run.result()
    assert result.outcome is Outcome.STEP_CAP_REACHED, result.reason
    assert repo.read("calc.py") == BROKEN


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (turn(text="Looks good to me."), "gave no verdicts by give_verdict"),
        (verdict(True, ""), "a verdict that can't be used: findings"),
    ],
    ids=["none", "no findings"],
)
async def test_what_is_no_verdict_is_no_pass(
    start: Start, repo: Repo, tmp_path: Path, reply: Turn, said: str
) -> None:
    run = await start(
        turn(fix(), call("finish", summary="x", fails=True, shows=(said,))),
        turn(call("finish", summary="x", fails=True)),
        verification=reviewer(tmp_path, reply, reply),
    )
    result = await run.result()
    assert (result.outcome, result.code) == (Outcome.ESCALATED, "CriterionErrored"), result.reason
    assert said in result.reason
    assert repo.read("calc.py") == BROKEN


async def test_a_change_that_is_too_large_to_be_shown_does_not_pass(
    start: Start, repo: Repo, tmp_path: Path
) -> None:
    large = "".join(f"line {n}\n" for n in range(10_000))
    run = await start(
        turn(
            fix(),
            call("write_file", path="large.txt", content=large),
            call("finish", summary="x", fails=True, shows=("a review is shown 98,304 at most",)),
        ),
        verification=reviewer(tmp_path, verdict(True, "not asked")),
        budget={"steps": 1},
    )
    result = await run.result()
    assert checks(result) == [("command", "passed"), ("review", "failed")]
    assert repo.read("calc.py") == BROKEN
