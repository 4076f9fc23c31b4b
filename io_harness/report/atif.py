"""The report as a trajectory in the Agent Trajectory Interchange Format, version 1.8.

https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from io_harness import __version__, trace
from io_harness.workflows.briefing import ToolDefinition
from io_harness.workflows.messages import MalformedToolCall, Reasoning, ToolCall
from io_harness.workflows.own_tools import FINISH
from io_harness.workflows.payloads import ToolDone
from io_harness.workflows.result import Spend, Usage, VerificationReport

from .gather import Report
from .turns import Chapter, chapters

VERSION = "ATIF-v1.8"

_NO_BRIEFING = "The system prompt and the harness's own tools are not in the run's history."

Object = dict[str, Any]


def trajectory(report: Report) -> Object:
    """The whole document; sub-agents are embedded in it."""
    steps = list(_steps(report))
    for number, step in enumerate(steps, start=1):
        step["step_id"] = number
    return _without_none({
        "schema_version": VERSION,
        "session_id": report.began.workflow_id,
        "trajectory_id": report.began.run_id,
        "agent": _without_none({
            "name": "io-harness",
            "version": __version__,
            "model_name": next(iter(report.models), None),
            "tool_definitions": [_tool(each) for each in report.tools] or None,
        }),
        "steps": steps,
        "notes": _NO_BRIEFING if report.briefing is None else None,
        "final_metrics": _totals(report.spend, len(steps)),
        "subagent_trajectories": [trajectory(child) for child in report.children] or None,
        "extra": _extra(report),
    })  # fmt: skip


def _steps(report: Report) -> Iterator[Object]:
    if report.briefing is not None:
        yield _step("system", report.began.at, report.briefing.system)
    yield _step("user", report.began.at, report.first_message)
    for chapter in chapters(report.steps):
        if chapter.model is not None:
            yield _turn(chapter, chapter.model)
        for entry in chapter.entries:
            if (told := _told(entry, report)) is not None:
                yield told


def _turn(chapter: Chapter, model: trace.ModelStep) -> Object:
    completion = model.completion
    calls = completion.message.calls
    results = list(_results(chapter, calls))
    reasoning = [p.text for p in completion.message.parts if isinstance(p, Reasoning) and p.text]
    return _step(
        "agent",
        model.at,
        completion.message.text,
        model_name=f"{completion.message.served_by.provider}/{completion.message.served_by.name}",
        reasoning_content="\n\n".join(reasoning) or None,
        tool_calls=[_call(call) for call in calls] or None,
        observation={"results": results} if results else None,
        metrics=_metrics(completion.usage) | _cost(completion.cost_usd),
        llm_call_count=1,
        extra={"purpose": model.purpose, "finish": completion.finish, "seconds": model.seconds},
    )


def _tool(tool: ToolDefinition) -> Object:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": told}


def _call(call: ToolCall | MalformedToolCall) -> Object:
    found: Object = {"tool_call_id": call.id, "function_name": call.name}
    match call:
        case ToolCall():
            return found | {"arguments": call.arguments}
        case MalformedToolCall():
            return found | {"arguments": {}, "extra": {"malformed": call.raw, "error": call.error}}


def _results(chapter: Chapter, calls: Sequence[ToolCall | MalformedToolCall]) -> Iterator[Object]:
    """What the model was shown for its calls, as far as an activity made it."""
    for entry in chapter.entries:
        match entry:
            case trace.ToolStep(call=ToolCall(id=id), outcome=ToolDone() as done):
                yield _without_none({
                    "source_call_id": id,
                    "content": done.observation.text,
                    "extra": _without_none({
                        "is_error": done.observation.is_error,
                        "seconds": entry.seconds,
                        "snapshot": done.head,
                        "refused": done.refused.model_dump(mode="json") if done.refused else None,
                    }),
                })  # fmt: skip
            case trace.VerifiedStep():
                claim = next((call.id for call in calls if call.name == FINISH), None)
                yield _without_none({"source_call_id": claim, "content": _verdict(entry.report)})
            case _:
                continue


def _told(entry: trace.Step, report: Report) -> Object | None:
    """What is no turn of the model, but belongs to what happened."""
    match entry:
        case trace.DecidedStep():
            decision = entry.decision
            words = f": {decision.reason}" if decision.reason else ""
            return _step(
                "user",
                entry.at,
                f"{decision.verdict} {decision.request}{words}",
                extra={"decision": decision.model_dump(mode="json"), "identity": entry.identity},
            )
        case trace.FailedStep():
            message = f"{entry.activity} {entry.how.replace('_', ' ')}: {entry.message}"
            return _step("system", entry.at, message, extra={"code": entry.code})
        case trace.CancelAskedStep():
            return _step("user", entry.at, "cancel", extra={"identity": entry.identity})
        case trace.ChildStep(what="started"):
            return _delegated(entry, report)
        case _:
            return None


def _delegated(entry: trace.ChildStep, report: Report) -> Object:
    found = [c.began for c in report.children if c.began.workflow_id == entry.workflow_id]
    refs = [{"trajectory_id": began.run_id, "session_id": began.workflow_id} for began in found]
    return _step(
        "system",
        entry.at,
        f"sub-agent {entry.workflow_id} started",
        observation={"results": [{"subagent_trajectory_ref": refs}]} if refs else None,
    )


def _verdict(report: VerificationReport) -> str:
    lines = (f"[{c.kind}] {c.verdict}: {c.summary}\n{c.detail}".rstrip() for c in report.checks)
    return "\n\n".join((f"Verification {report.verdict}.", *lines))


def _step(source: str, at: datetime, message: str, **more: object) -> Object:
    return {"step_id": 0, "source": source, "timestamp": at.isoformat(), "message": message,
            **_without_none(more)}  # fmt: skip


def _metrics(usage: Usage) -> Object:
    return {
        "prompt_tokens": usage.input + usage.cached + usage.cache_write,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cached,
        "extra": {"cache_write_tokens": usage.cache_write, "reasoning_tokens": usage.reasoning},
    }


def _cost(usd: Decimal | None) -> Object:
    return {} if usd is None else {"cost_usd": float(usd)}


def _totals(spend: Spend, steps: int) -> Object:
    return {
        "total_prompt_tokens": spend.usage.total - spend.usage.output,
        "total_completion_tokens": spend.usage.output,
        "total_cached_tokens": spend.usage.cached,
        "total_cost_usd": float(spend.usd),
        "total_steps": steps,
        "extra": {"tool_calls": spend.tool_calls, "unpriced_calls": spend.unpriced_calls},
    }


def _extra(report: Report) -> dict[str, JsonValue]:
    """How the run ended, as the workflow returned it."""
    ended = report.ended
    return {
        "contract": report.contract,
        "status": ended.status if ended else "running",
        "result": report.result.model_dump(mode="json") if report.result else None,
    }


def _without_none(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
