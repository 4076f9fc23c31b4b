"""Histories of real runs, replayed: a change of the workflow's code that would break running ones
fails here. `python -m tests.replay.record` makes them anew."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin
from io_harness.workflows.agent_run import AgentRun

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def load(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(path.stem, path.read_text())


def test_there_is_a_history_for_each_capability() -> None:
    names = {path.stem for path in HISTORIES}
    assert {"demo", "approval", "continued", "cancelled", "budget"} <= names


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)
async def test_the_workflow_still_makes_the_same_commands(path: Path, tmp_path: Path) -> None:
    replayer = Replayer(workflows=[], plugins=[HarnessPlugin(Settings(data_dir=tmp_path))])
    await replayer.replay_workflow(load(path))


async def test_the_workflow_runs_under_the_full_restrictions_of_the_sandbox() -> None:
    """Nothing passes through but what passes by default, so a call of a clock or of randomness in any
    workflow module is found."""
    replayer = Replayer(workflows=[AgentRun], data_converter=pydantic_data_converter)
    await replayer.replay_workflow(load(Path(__file__).parent / "histories" / "demo.json"))


@pytest.mark.parametrize("swapped", ["complete", "use_tool", "verify"])
async def test_a_history_in_which_an_activity_stands_elsewhere_is_refused(
    swapped: str, tmp_path: Path
) -> None:
    """The control: the replayer does find a workflow that schedules something else."""
    raw = json.loads((Path(__file__).parent / "histories" / "demo.json").read_text())
    for event in raw["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == swapped:
            scheduled["activityType"]["name"] = "land"
            break
    replayer = Replayer(workflows=[], plugins=[HarnessPlugin(Settings(data_dir=tmp_path))])
    with pytest.raises(Exception, match=r"(?i)nondeterminism"):
        await replayer.replay_workflow(WorkflowHistory.from_json("demo", raw))
