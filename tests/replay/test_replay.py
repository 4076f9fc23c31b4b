"""Histories of real runs, replayed: a change of the workflow's code that would break running ones
fails here. `python -m tests.replay.record` makes them anew."""

import base64
import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin
from io_harness.workflows.agent_run import AgentRun

from .decisions import Decisions, recorded
from .record import MAKE

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def load(path: Path) -> WorkflowHistory:
    raw = json.loads(path.read_text())
    started = raw["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], raw)


def test_there_is_a_history_for_each_capability() -> None:
    assert {path.stem for path in HISTORIES} == set(MAKE)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)
async def test_the_workflow_still_makes_the_same_commands(path: Path, tmp_path: Path) -> None:
    replayer = Replayer(workflows=[], plugins=[HarnessPlugin(Settings(data_dir=tmp_path))])
    await replayer.replay_workflow(load(path))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)
async def test_the_workflow_still_decides_the_same(path: Path, tmp_path: Path) -> None:
    """The replayer compares the kinds of commands; here it is what they say, too."""
    decisions = Decisions()
    replayer = Replayer(
        workflows=[],
        plugins=[HarnessPlugin(Settings(data_dir=tmp_path))],
        interceptors=[decisions],
    )
    history = load(path)
    await replayer.replay_workflow(history)
    found = recorded(history, decisions.made)
    assert len(found) >= 2
    assert [each.digest for each in decisions.made] == found


async def test_a_history_in_which_a_decision_differs_is_found(tmp_path: Path) -> None:
    """The control: a tool call that began from another snapshot."""
    raw = json.loads((Path(__file__).parent / "histories" / "demo.json").read_text())
    for event in raw["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == "use_tool":
            (payload,) = scheduled["input"]["payloads"]
            given = json.loads(base64.b64decode(payload["data"]))
            payload["data"] = base64.b64encode(
                json.dumps({**given, "base": "0" * 40}).encode()
            ).decode()
            break
    decisions = Decisions()
    replayer = Replayer(
        workflows=[],
        plugins=[HarnessPlugin(Settings(data_dir=tmp_path))],
        interceptors=[decisions],
    )
    history = WorkflowHistory.from_json("demo", raw)
    await replayer.replay_workflow(history)
    found = recorded(history, decisions.made)
    wrong = [a for a, b in zip(decisions.made, found, strict=True) if a.digest != b]
    assert [each.activity for each in wrong] == ["use_tool"]


async def test_the_workflow_runs_under_the_full_restrictions_of_the_sandbox() -> None:
    """Nothing passes through but what passes by default, so a call of a clock or of randomness in any
    workflow module is found."""
    replayer = Replayer(
        workflows=[AgentRun],
        data_converter=pydantic_data_converter,
        unsandboxed_workflow_runner=SandboxedWorkflowRunner(),
    )
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
