"""A run and its sub-agents as a tree: who did what part, how it ended, what it cost."""

import re

from io_harness.workflows.model import Record
from io_harness.workflows.result import Spend

from .gather import Report


class Branch(Record):
    """One agent and those that it started."""

    run: str
    """Its workflow id."""
    goal: str
    state: str
    """Outcome; `running`; or Temporal's word for an end without a result."""
    spend: Spend
    """Of this agent alone."""
    seconds: float
    """From its start to its end, or to now."""
    agents: tuple["Branch", ...] = ()
    """In the order in which they were spawned, which their ids tell."""
    missing: tuple[str, ...] = ()
    """Workflow ids of agents whose history the server no longer keeps."""


def tree_of(report: Report) -> Branch:
    return Branch(
        run=report.began.workflow_id,
        goal=report.began.goal,
        state=_state(report),
        spend=report.spend,
        seconds=report.seconds,
        agents=tuple(sorted(map(tree_of, report.children), key=_place)),
        missing=report.missing,
    )


def _place(branch: Branch) -> list[int]:
    """Step, call and number, with which an agent's id ends."""
    return [int(number) for number in re.findall(r"\d+", branch.run.rpartition("/")[2])]


def _state(report: Report) -> str:
    if report.ended is None:
        return "running"
    return report.result.outcome.value if report.result else report.ended.status
