"""Where a run's time went: each activity and each wait as a bar on one line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from io_harness import trace

from .gather import Report

WIDTH = 1000.0
"""Units of the whole line."""
_LEAST = 1.5
"""A bar is at least as wide, to be seen."""

Kind = Literal["model", "tool", "verify", "human", "other"]
LABELS: dict[Kind, str] = {
    "model": "model",
    "tool": "tools",
    "verify": "verification",
    "human": "waiting for people",
    "other": "preparing and landing",
}


@dataclass(frozen=True)
class Bar:
    kind: Kind
    start: float
    width: float
    label: str
    seconds: float


def bars(report: Report) -> tuple[Bar, ...]:
    """In the order of their ends."""
    whole = report.seconds or 1.0
    began = report.began.at

    def bar(kind: Kind, label: str, offset: float, seconds: float) -> Bar:
        start = min(max(offset / whole, 0), 1) * WIDTH
        width = max(seconds / whole * WIDTH, _LEAST)
        return Bar(kind, min(start, WIDTH - _LEAST), min(width, WIDTH - start), label, seconds)

    found = [
        bar(kind, step.summary, (step.at - began).total_seconds() - step.seconds, step.seconds)
        for step, kind in _calls(report)
    ]
    for approval in report.approvals:
        if approval.asked is not None:
            until = approval.decided or (report.ended.at if report.ended else report.read)
            seconds = max((until - approval.asked).total_seconds(), 0)
            label = approval.request.target if approval.request else approval.question
            found.append(bar("human", label, (approval.asked - began).total_seconds(), seconds))
    return tuple(found)


def totals(report: Report) -> dict[Kind, float]:
    """Seconds of each kind. What ran side by side counts for each."""
    sums: dict[Kind, float] = {}
    for each in bars(report):
        sums[each.kind] = sums.get(each.kind, 0) + each.seconds
    return {kind: sums[kind] for kind in LABELS if kind in sums}


def _calls(report: Report) -> Iterator[tuple[trace.Call, Kind]]:
    for step in report.steps:
        match step:
            case trace.ModelStep():
                yield step, "model"
            case trace.ToolStep():
                yield step, "tool"
            case trace.VerifiedStep():
                yield step, "verify"
            case trace.FailedStep(activity="complete"):
                yield step, "model"
            case trace.FailedStep(activity="use_tool"):
                yield step, "tool"
            case trace.Call():
                yield step, "other"
            case _:
                continue
