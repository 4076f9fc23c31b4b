"""The spans of activities. A span covers one attempt; the run's own span is its parent."""

import contextlib
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue
from temporalio import activity
from temporalio.exceptions import ApplicationError

from io_harness import __version__, sandbox
from io_harness.activities.providers.base import ModelRequest
from io_harness.workflows.contract import Model
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.payloads import (
    CompleteInput,
    Completion,
    NeedsApproval,
    ReleaseInput,
    ToolDone,
    ToolOutcome,
    UseToolInput,
)
from io_harness.workflows.result import Usage, VerificationReport

from . import content, metrics

AGENT = "io-harness"
"""`gen_ai.agent.name` of every run."""
_PROVIDERS = {"openai-responses": "openai"}
"""Ours that the conventions know by another name."""

_tracer = trace.get_tracer(metrics.NAME, __version__)

Attributes = dict[str, AttributeValue]


@dataclass
class ModelCall:
    """One attempt at a model call: what it used is told by the time it ends, however it ends."""

    span: Span
    usage: Usage
    cost_usd: Decimal | None = None

    def asked(self, request: ModelRequest) -> None:
        self.span.set_attributes(content.request(request))

    def replied(self, completion: Completion) -> None:
        usage = completion.usage
        self.span.set_attributes(
            {
                "gen_ai.response.model": completion.message.served_by.name,
                "gen_ai.response.finish_reasons": [completion.finish],
                "gen_ai.usage.input_tokens": usage.total - usage.output,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cached,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
                **content.reply(completion),
            }
        )


@contextlib.contextmanager
def model_call(call: CompleteInput, model: Model) -> Iterator[ModelCall]:
    """The span `chat <model>`, and the metrics of the attempt."""
    about: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(model.provider, model.provider),
        "gen_ai.request.model": model.name,
        **_server(model),
    }
    more: Attributes = {
        "gen_ai.request.max_tokens": call.max_output_tokens,
        "io_harness.step": call.step,
        "io_harness.purpose": call.purpose,
    }
    if model.options.temperature is not None:
        more["gen_ai.request.temperature"] = model.options.temperature
    with _span(f"chat {model.name}", about | more, SpanKind.CLIENT) as attempt:
        attempt.measured = metrics.MODEL_SECONDS, about
        told = ModelCall(attempt.span, Usage())
        try:
            yield told
        finally:
            _spent(told, about)


def _spent(call: ModelCall, about: Attributes) -> None:
    counts = {"input": call.usage.total - call.usage.output, "output": call.usage.output}
    for kind, number in counts.items():
        if number:
            metrics.measure(metrics.TOKENS, number, {**about, "gen_ai.token.type": kind})
    if call.cost_usd is not None:
        metrics.measure(metrics.MODEL_COST, float(call.cost_usd), about)
        call.span.set_attribute("io_harness.cost_usd", float(call.cost_usd))


def _server(model: Model) -> Attributes:
    if model.base_url is None or model.provider == "replay":
        return {}
    parts = urlsplit(model.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


@dataclass
class ToolUse:
    """One attempt at a tool call."""

    span: Span
    call: ToolCall

    def came_of(self, outcome: ToolOutcome) -> None:
        match outcome:
            case ToolDone(refused=refused) if refused is not None:
                about = {
                    "gen_ai.tool.name": self.call.name,
                    "io_harness.policy.layer": refused.layer,
                }
                self.span.set_attributes({**about, "io_harness.policy.rule": refused.rule})
                metrics.count(metrics.REFUSALS, about)
            case NeedsApproval():
                self.span.set_attribute(
                    "io_harness.approval.acts", [request.act for request in outcome.requests]
                )
            case ToolDone():
                self.span.set_attributes(
                    {
                        "io_harness.tool.is_error": outcome.observation.is_error,
                        "io_harness.tool.files_changed": len(outcome.changed),
                        **content.tool_result(outcome),
                    }
                )


@contextlib.contextmanager
def tool_call(given: UseToolInput, call: ToolCall) -> Iterator[ToolUse]:
    """The span `execute_tool <tool>`, and the metrics of the attempt. A preview has another name: it
    executes nothing."""
    about: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
    more: Attributes = {
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "io_harness.step": given.step,
        **content.tool_arguments(call),
    }
    name = f"preview {call.name}" if given.preview_only else f"execute_tool {call.name}"
    with _span(name, about | more) as attempt:
        if not given.preview_only:
            attempt.measured = metrics.TOOL_SECONDS, about
        yield ToolUse(attempt.span, call)


@contextlib.contextmanager
def activity_span(name: str) -> Iterator[Span]:
    """The span of an activity for which the conventions have no name: prepare, verify, land,
    release."""
    with _span(name, {}) as attempt:
        yield attempt.span


def verified(span: Span, report: VerificationReport) -> None:
    about = {"io_harness.verification.verdict": report.verdict}
    span.set_attributes(about)
    metrics.count(metrics.VERIFICATIONS, about)


def run_ended(span: Span, given: ReleaseInput) -> None:
    about = {"io_harness.outcome": given.outcome.value}
    span.set_attributes(about)
    metrics.count(metrics.RUNS, about)
    metrics.measure(metrics.RUN_SECONDS, given.seconds, about)
    metrics.measure(metrics.RUN_WAITING, given.waited_seconds, about)
    metrics.measure(metrics.RUN_COST, float(given.usd), about)


async def sandboxed(command: Coroutine[None, None, sandbox.Completed]) -> sandbox.Completed:
    """Await a sandboxed command, under a span of its own."""
    with _span("sandbox", {}) as attempt:
        completed = await command
        about: Attributes = {
            "io_harness.sandbox.backend": completed.isolation.backend,
            "io_harness.sandbox.cause": completed.cause,
        }
        attempt.span.set_attributes(about)
        if completed.exit_code is not None:
            attempt.span.set_attribute("process.exit.code", completed.exit_code)
        attempt.measured = metrics.SANDBOX_SECONDS, about
        return completed


@dataclass
class _Attempt:
    span: Span
    measured: tuple[metrics.Metric, Attributes] | None = None
    """The metric of its duration."""


@contextlib.contextmanager
def _span(
    name: str, attributes: Attributes, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[_Attempt]:
    """A span with its run and attempt; an error ends it with `error.type`. A cancellation is none."""
    began = time.monotonic()
    with _tracer.start_as_current_span(
        name,
        kind=kind,
        attributes=_of_run() | attributes,
        record_exception=False,  # messages of errors may hold contents
        set_status_on_exception=False,
    ) as span:
        attempt = _Attempt(span)
        failed: Attributes = {}
        try:
            yield attempt
        except Exception as error:
            code = error.type if isinstance(error, ApplicationError) else None
            failed = {"error.type": code or type(error).__name__}
            span.set_attributes(failed)
            span.set_status(Status(StatusCode.ERROR))
            raise
        finally:
            if attempt.measured is not None:
                metric, about = attempt.measured
                metrics.measure(metric, time.monotonic() - began, about | failed)


def _of_run() -> Attributes:
    if not activity.in_activity():
        return {}
    info = activity.info()
    return {
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": info.workflow_id or "",
        "io_harness.attempt": info.attempt,
    }
