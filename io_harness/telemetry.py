"""`TelemetryPlugin`: spans of runs and of waits for people, beside Temporal's OpenTelemetry plugin.

Needs the extra `io-harness[opentelemetry]`. Activities make their own spans and metrics, with or
without this.
"""

from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from io_harness import __version__
from io_harness.activities.telemetry.metrics import NAME
from io_harness.activities.telemetry.spans import AGENT
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.observe import OBSERVER
from io_harness.workflows.result import Outcome, RunResult

_RUN = "AgentRun"
_GOOD = frozenset({Outcome.SUCCESS, Outcome.FINISHED})

Attributes = dict[str, AttributeValue]


class TelemetryPlugin(SimplePlugin):
    """Give it to the client after `temporalio.contrib.opentelemetry.OpenTelemetryPlugin`, which carries
    the trace from the client through workflows to activities and makes spans safe under replay."""

    def __init__(self) -> None:
        super().__init__("io-harness-telemetry", interceptors=[_Runs()])


class _Runs(Interceptor):
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return _Run


class _Run(WorkflowInboundInterceptor):
    """One span per run; a run that continues as new has one for each part, the later in the earlier."""

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        if workflow.info().workflow_type != _RUN:
            return await super().execute_workflow(input)
        span = _tracer().start_span(
            f"invoke_agent {AGENT}",
            kind=SpanKind.INTERNAL,
            attributes=_about() | {"gen_ai.operation.name": "invoke_agent"},
        )
        # Ended by hand: a run that is evicted from a worker's cache unwinds too, and has not ended.
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            OBSERVER.set(_Waits())
            try:
                result = await super().execute_workflow(input)
            except workflow.ContinueAsNewError:
                span.set_attribute("io_harness.continued", True)
                span.end()
                raise
            except Exception as error:
                _failed(span, error.type if isinstance(error, ApplicationError) else None)
                span.end()
                raise
        if not _is_evicted(result):
            _ended(span, result)
            span.end()
        return result


class _Waits:
    """A span for each request that waited for a person."""

    def decided(self, pending: PendingApproval, decision: Decision | None, now: float) -> None:
        attributes: Attributes = {
            "io_harness.step": pending.step,
            "io_harness.approval.act": pending.request.act,
            "io_harness.approval.request": pending.id,
            "io_harness.approval.verdict": decision.verdict if decision else "expired",
        }
        span = _tracer().start_span(
            "approval", attributes=_about() | attributes, start_time=_nanoseconds(pending.opened_at)
        )
        span.end(_nanoseconds(now))


def _tracer() -> trace.Tracer:
    return trace.get_tracer(NAME, __version__)


def _about() -> Attributes:
    return {
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.version": __version__,
        "gen_ai.conversation.id": workflow.info().workflow_id,
    }


def _is_evicted(result: RunResult) -> bool:
    """An eviction cancels the workflow's tasks, and before the first step that gives a result too."""
    return result.outcome is Outcome.CANCELLED and workflow.cancellation_reason() is None


def _ended(span: Span, result: RunResult) -> None:
    usage = result.spend.usage
    span.set_attributes(
        {
            "io_harness.outcome": result.outcome.value,
            "io_harness.steps": result.spend.steps,
            "io_harness.tool_calls": result.spend.tool_calls,
            "io_harness.cost_usd": float(result.spend.usd),
            "gen_ai.usage.input_tokens": usage.total - usage.output,
            "gen_ai.usage.output_tokens": usage.output,
        }
    )
    if result.models:
        span.set_attribute("gen_ai.request.model", result.models[0].name)
    if result.outcome not in _GOOD:
        _failed(span, result.code or result.outcome.value)


def _failed(span: Span, code: str | None) -> None:
    span.set_attribute("error.type", code or "_OTHER")
    span.set_status(Status(StatusCode.ERROR))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
