"""The trajectory is one by the format's own models."""

from typing import Any

import pytest
from atif import Trajectory
from pydantic import ValidationError

from io_harness.report.atif import VERSION, trajectory
from io_harness.report.gather import Report

from . import scene


@pytest.mark.parametrize(
    "report",
    [scene.report(), scene.report(ended=False), scene.report(children=(scene.child(),))],
    ids=["closed", "live", "with a sub-agent"],
)
def test_it_is_valid(report: Report) -> None:
    found = Trajectory.model_validate(trajectory(report))
    assert found.schema_version == VERSION == "ATIF-v1.8"
    assert found.to_json_dict() == trajectory(report)


def test_the_judge_would_see_a_fault() -> None:
    broken: dict[str, Any] = trajectory(scene.report())
    broken["steps"][2]["observation"]["results"][0]["source_call_id"] = "unknown"
    with pytest.raises(ValidationError, match="does not match any tool_call"):
        Trajectory.model_validate(broken)


def test_a_turn_has_its_calls_results_and_cost() -> None:
    found = Trajectory.model_validate(trajectory(scene.report()))
    system, goal, first = found.steps[:3]
    assert (system.source, system.message) == ("system", "You carry out one task.")
    assert (goal.source, goal.message) == (
        "user", "Make add right. It subtracts.\n\nKeep to this:\n- Keep the name.",
    )  # fmt: skip
    defined = found.agent.tool_definitions
    assert defined
    assert [tool["function"]["name"] for tool in defined] == ["edit_file"]
    assert first.source == "agent"
    assert first.reasoning_content == "it subtracts"
    assert [c.function_name for c in first.tool_calls or ()] == [
        "edit_file", "run_command", "read_file", "edit_file",
    ]  # fmt: skip
    assert first.observation
    shown = {r.source_call_id: r.content for r in first.observation.results}
    assert shown == {"t1": "edited", "t2": "ran", "t3": "refused: no"}
    assert first.metrics
    assert (first.metrics.prompt_tokens, first.metrics.cached_tokens) == (160, 50)
    assert first.metrics.cost_usd == 0.0123
    assert found.final_metrics
    assert found.final_metrics.total_cost_usd == 0.0369


def test_people_and_sub_agents_are_in_it() -> None:
    found = Trajectory.model_validate(trajectory(scene.report(children=(scene.child(),))))
    people = [step.message for step in found.steps if step.source == "user"]
    assert "approve 1.1-aaaaaaaaaaaa: go on" in people
    assert found.subagent_trajectories
    (sub,) = found.subagent_trajectories
    assert sub.trajectory_id == "child-1"
    refs = [
        ref.trajectory_id
        for step in found.steps if step.observation
        for result in step.observation.results
        for ref in result.subagent_trajectory_ref or ()
    ]  # fmt: skip
    assert refs == ["child-1"]
