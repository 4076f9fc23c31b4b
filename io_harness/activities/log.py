"""What a worker logs of its activities: one line for each that ended well, and who they worked for.

Failures are logged by the SDK, in the same task, so they carry the same fields. Contents (prompts,
arguments, outputs, paths) are never logged.
"""

import time
from collections.abc import Mapping
from typing import Any

from structlog.contextvars import bind_contextvars
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from io_harness.sandbox.log import get_logger
from io_harness.workflows.payloads import (
    CompleteInput,
    Completion,
    InlineCall,
    NeedsApproval,
    Prepared,
    ReleaseInput,
    ToolDone,
    UseToolInput,
)
from io_harness.workflows.result import LandConflict, Landed, NothingToLand, VerificationReport

_log = get_logger(__name__)


class ActivityLog(Interceptor):
    """Logs the activities of the harness, and leaves others in the worker alone."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Logged(next, self._names)


class _Logged(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, names: frozenset[str]) -> None:
        super().__init__(next)
        self._names = names

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.activity_type not in self._names:
            return await super().execute_activity(input)
        given = input.args[0] if input.args else None
        # Bound for as long as this task lives: the SDK logs a failure after this has returned.
        bind_contextvars(
            run=info.workflow_id,
            activity=info.activity_type,
            attempt=info.attempt,
            **_asked(given),
        )
        began = time.monotonic()
        result = await super().execute_activity(input)
        seconds = round(time.monotonic() - began, 3)
        _log.info(f"{info.activity_type} done", seconds=seconds, **_came_of(result))
        return result


def _asked(given: object) -> Mapping[str, object]:
    match given:
        case CompleteInput():
            return {"step": given.step}
        case UseToolInput(call=InlineCall(call=call)):
            return {"step": given.step, "tool": call.name}
        case UseToolInput():
            return {"step": given.step}
        case ReleaseInput():
            return {"outcome": given.outcome.value}
        case _:
            return {}


def _came_of(result: object) -> Mapping[str, object]:
    match result:
        case Completion():
            return {
                "model": f"{result.message.served_by.provider}/{result.message.served_by.name}",
                "finish": result.finish,
                "input_tokens": result.usage.total - result.usage.output,
                "output_tokens": result.usage.output,
                "usd": None if result.cost_usd is None else float(result.cost_usd),
            }
        case ToolDone():
            refused = {"refused_by": result.refused.rule} if result.refused else {}
            return {
                "files_changed": len(result.changed),
                "is_error": result.observation.is_error,
                **refused,
            }
        case NeedsApproval():
            return {"asks": [request.act for request in result.requests]}
        case VerificationReport():
            return {"verdict": result.verdict}
        case Landed() | LandConflict() | NothingToLand():
            return {"landing": result.kind}
        case Prepared():
            return {"isolation": result.isolation.backend}
        case _:
            return {}
