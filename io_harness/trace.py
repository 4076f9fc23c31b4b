"""Turns a run's history into typed steps. The history is the trace: nothing else is recorded.

`Tracer` takes events one at a time, so the same code reads a closed run and follows a live one.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from io_harness.failures import readable
from io_harness.workflows.approvals import Decision
from io_harness.workflows.briefing import Briefing
from io_harness.workflows.mcp import McpListing
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.model import Record
from io_harness.workflows.payloads import (
    Admitted,
    CompleteInput,
    Completion,
    LandOutcome,
    NeedsApproval,
    Prepared,
    Released,
    ToolOutcome,
    UseToolInput,
)
from io_harness.workflows.result import LandReport, RunResult, VerificationReport


class _Step(Record):
    at: datetime
    """When it ended."""


class Began(_Step):
    """The run, or after continue-as-new its next part."""

    kind: Literal["began"] = "began"
    workflow_id: str
    run_id: str
    part: int
    """1 for the first run id of the chain."""
    goal: str
    contract: dict[str, JsonValue] = {}
    """As it was given."""


class Call(_Step):
    """One activity, from scheduling to its end."""

    seconds: float
    """From scheduling to the end, retries and queueing included."""
    attempts: int
    """How often it ran; 1 when nothing went wrong."""
    summary: str
    """What the call was to do, in one line."""
    last_failure: str | None = None
    """Why the attempt before the last one failed."""


class AdmittedStep(Call):
    kind: Literal["admitted"] = "admitted"
    briefing: Briefing | None
    """None: an older release admitted the run, and did not tell."""


class ListedStep(Call):
    """The tools of the MCP servers, when they were first or newly listed."""

    kind: Literal["listed"] = "listed"
    listing: McpListing


class PreparedStep(Call):
    kind: Literal["prepared"] = "prepared"
    prepared: Prepared


class ModelStep(Call):
    kind: Literal["model"] = "model"
    step: int
    purpose: str
    completion: Completion


class ToolStep(Call):
    """A tool call, with what it showed or what it asks."""

    kind: Literal["tool"] = "tool"
    step: int
    call: ToolCall | None
    """None if the message that holds a large call is not in this part of the history."""
    outcome: ToolOutcome


class VerifiedStep(Call):
    kind: Literal["verified"] = "verified"
    report: VerificationReport


class LandedStep(Call):
    kind: Literal["landed"] = "landed"
    report: LandReport | NeedsApproval


class ReleasedStep(Call):
    kind: Literal["released"] = "released"
    ref: str


class OtherStep(Call):
    """An activity of another release, or of a workflow around this one."""

    kind: Literal["other"] = "other"
    activity: str


class FailedStep(Call):
    """A call that failed for good, or was cancelled with its run."""

    kind: Literal["failed"] = "failed"
    activity: str
    how: Literal["failed", "timed_out", "cancelled"]
    code: str | None
    message: str


class DecidedStep(_Step):
    """A human's decision, as it arrived. What became of it is in the run's own log."""

    kind: Literal["decided"] = "decided"
    via: Literal["signal", "update"]
    decision: Decision
    identity: str
    """The client that sent it, as Temporal recorded it."""


class ChildStep(_Step):
    kind: Literal["child"] = "child"
    workflow_id: str
    workflow_type: str
    what: Literal["started", "completed", "failed", "cancelled", "timed_out", "terminated"]


class CancelAskedStep(_Step):
    kind: Literal["cancel_asked"] = "cancel_asked"
    identity: str


class ContinuedStep(_Step):
    kind: Literal["continued"] = "continued"
    new_run_id: str


class EndedStep(_Step):
    kind: Literal["ended"] = "ended"
    status: Literal["completed", "failed", "cancelled", "terminated", "timed_out"]
    result: RunResult | None
    code: str | None = None
    """Error code of the workflow's failure, where there is no result."""
    message: str = ""
    """What the failure says."""


Step = Annotated[
    Began
    | AdmittedStep
    | ListedStep
    | PreparedStep
    | ModelStep
    | ToolStep
    | VerifiedStep
    | LandedStep
    | ReleasedStep
    | OtherStep
    | FailedStep
    | DecidedStep
    | ChildStep
    | CancelAskedStep
    | ContinuedStep
    | EndedStep,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class Running:
    """An activity that has been scheduled and has not ended."""

    activity: str
    summary: str
    since: datetime


@dataclass
class _Scheduled:
    event: HistoryEvent
    summary: str
    attempts: int = 1
    last_failure: str | None = None


@dataclass
class Tracer:
    """Reads the events of one run chain, in order."""

    client: Client
    parts: int = 0
    _scheduled: dict[int, _Scheduled] = field(default_factory=dict)
    _last_calls: dict[int, Sequence[object]] = field(default_factory=dict)
    """Calls of the newest assistant messages, by step: large tool calls refer to them."""

    @property
    def running(self) -> tuple[Running, ...]:
        return tuple(
            Running(_activity(s.event), s.summary, _time(s.event)) for s in self._scheduled.values()
        )

    async def feed(self, event: HistoryEvent) -> Step | None:
        """The step that ends with this event, if one does."""
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
        if kind.startswith("ACTIVITY_TASK_"):
            return await self._activity(kind.removeprefix("ACTIVITY_TASK_"), event)
        if kind.startswith("CHILD_WORKFLOW_EXECUTION_"):
            return _child(kind.removeprefix("CHILD_WORKFLOW_EXECUTION_"), event)
        match kind:
            case "WORKFLOW_EXECUTION_STARTED":
                return await self._began(event)
            case "WORKFLOW_EXECUTION_SIGNALED":
                signal = event.workflow_execution_signaled_event_attributes
                if signal.signal_name != "decide":
                    return None
                return DecidedStep(
                    at=_time(event),
                    via="signal",
                    decision=await self._decode(signal.input, Decision),
                    identity=signal.identity,
                )
            case "WORKFLOW_EXECUTION_UPDATE_ACCEPTED":
                asked = event.workflow_execution_update_accepted_event_attributes.accepted_request
                if asked.input.name != "submit_decision":
                    return None
                return DecidedStep(
                    at=_time(event),
                    via="update",
                    decision=await self._decode(asked.input.args, Decision),
                    identity=asked.meta.identity,
                )
            case "WORKFLOW_EXECUTION_CANCEL_REQUESTED":
                cancel = event.workflow_execution_cancel_requested_event_attributes
                return CancelAskedStep(at=_time(event), identity=cancel.identity)
            case _:
                return await self._ended(kind, event)

    async def _began(self, event: HistoryEvent) -> Began:
        started = event.workflow_execution_started_event_attributes
        self.parts += 1
        given = await self._decode(started.input, JsonValue)
        contract = given if isinstance(given, dict) else {}
        return Began(
            at=_time(event),
            workflow_id=started.workflow_id,
            run_id=started.original_execution_run_id,
            part=self.parts,
            goal=str(contract.get("goal", "")),
            contract=contract,
        )

    async def _activity(self, what: str, event: HistoryEvent) -> Step | None:
        if what == "SCHEDULED":
            summary = await self._text(event.user_metadata.summary)
            self._scheduled[event.event_id] = _Scheduled(event, summary)
            return None
        if what == "STARTED":
            started = event.activity_task_started_event_attributes
            scheduled = self._scheduled[started.scheduled_event_id]
            scheduled.attempts = started.attempt
            if started.HasField("last_failure"):
                scheduled.last_failure = _message(await self._readable(started.last_failure))
            return None
        attributes = getattr(event, event.WhichOneof("attributes") or "")
        if what == "CANCEL_REQUESTED":
            return None
        scheduled = self._scheduled.pop(attributes.scheduled_event_id)
        begun = _time(scheduled.event)
        call = {
            "at": _time(event),
            "seconds": (_time(event) - begun).total_seconds(),
            "attempts": scheduled.attempts,
            "summary": scheduled.summary,
            "last_failure": scheduled.last_failure,
        }
        if what == "COMPLETED":
            return await self._completed(scheduled.event, attributes.result, call)
        failure = attributes.failure if what != "CANCELED" else None
        how = {"FAILED": "failed", "TIMED_OUT": "timed_out", "CANCELED": "cancelled"}[what]
        return FailedStep.model_validate({
            **call,
            "activity": _activity(scheduled.event),
            "how": how,
            "code": failure.application_failure_info.type or None if failure else None,
            "message": _message(await self._readable(failure)) if failure else "",
        })  # fmt: skip

    async def _completed(
        self, scheduled: HistoryEvent, result: Payloads, call: dict[str, Any]
    ) -> Step:
        arguments = scheduled.activity_task_scheduled_event_attributes.input
        match _activity(scheduled):
            case "admit":
                told = (await self._decode(result, Admitted)).briefing
                return AdmittedStep(**call, briefing=Briefing.unpack(told) if told else None)
            case "list_mcp_tools":
                return ListedStep(**call, listing=await self._decode(result, McpListing))
            case "prepare":
                return PreparedStep(**call, prepared=await self._decode(result, Prepared))
            case "complete":
                asked = await self._decode(arguments, CompleteInput)
                completion = await self._decode(result, Completion)
                self._last_calls = {asked.step: completion.message.calls}
                return ModelStep(
                    **call, step=asked.step, purpose=asked.purpose, completion=completion
                )
            case "use_tool":
                use = await self._decode(arguments, UseToolInput)
                outcome = await self._decode(result, ToolOutcome)
                return ToolStep(**call, step=use.step, call=self._call(use), outcome=outcome)
            case "verify":
                report = await self._decode(result, VerificationReport)
                return VerifiedStep(**call, report=report)
            case "land":
                return LandedStep(**call, report=await self._decode(result, LandOutcome))
            case "release":
                return ReleasedStep(**call, ref=(await self._decode(result, Released)).ref)
            case other:
                return OtherStep(**call, activity=other)

    def _call(self, use: UseToolInput) -> ToolCall | None:
        if use.call.kind == "inline":
            return use.call.call
        calls = self._last_calls.get(use.step, ())
        found = calls[use.call.position] if use.call.position < len(calls) else None
        return found if isinstance(found, ToolCall) else None

    async def _ended(self, kind: str, event: HistoryEvent) -> Step | None:
        at = _time(event)
        match kind:
            case "WORKFLOW_EXECUTION_COMPLETED":
                payloads = event.workflow_execution_completed_event_attributes.result
                return EndedStep(
                    at=at, status="completed", result=await self._decode(payloads, RunResult)
                )
            case "WORKFLOW_EXECUTION_FAILED":
                failed = event.workflow_execution_failed_event_attributes
                failure = await self._readable(failed.failure)
                code = failure.application_failure_info.type or None
                return EndedStep(
                    at=at, status="failed", result=None, code=code, message=failure.message
                )
            case "WORKFLOW_EXECUTION_CANCELED":
                return EndedStep(at=at, status="cancelled", result=None)
            case "WORKFLOW_EXECUTION_TERMINATED":
                reason = event.workflow_execution_terminated_event_attributes.reason
                return EndedStep(at=at, status="terminated", result=None, message=reason)
            case "WORKFLOW_EXECUTION_TIMED_OUT":
                return EndedStep(at=at, status="timed_out", result=None)
            case "WORKFLOW_EXECUTION_CONTINUED_AS_NEW":
                went = event.workflow_execution_continued_as_new_event_attributes
                return ContinuedStep(at=at, new_run_id=went.new_execution_run_id)
            case _:
                return None

    async def _readable(self, failure: Failure) -> Failure:
        return await readable(self.client.data_converter, failure)

    async def _decode(self, payloads: Payloads, hint: Any) -> Any:
        [value] = await self.client.data_converter.decode(payloads.payloads[:1], [hint])
        return value

    async def _text(self, payload: Payload) -> str:
        if not payload.data:
            return ""
        [text] = await self.client.data_converter.decode([payload], [str])
        return cast(str, text)


async def read(client: Client, workflow_id: str, *, follow: bool = False) -> AsyncIterator[Step]:
    """The steps of a run from its first event, across continue-as-new.

    Args:
        follow: Wait for the steps to come, until the run has ended.

    Raises:
        temporalio.service.RPCError: with status NOT_FOUND, if there is no such run.
    """
    tracer = Tracer(client)
    async for event in events(client, workflow_id, follow=follow):
        step = await tracer.feed(event)
        if step is not None:
            yield step


async def events(
    client: Client, workflow_id: str, *, follow: bool = False
) -> AsyncIterator[HistoryEvent]:
    """The events of every run id of the chain, oldest first."""
    run_id: str | None = await _first_run(client, workflow_id)
    while run_id:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        run_id = None
        async for event in handle.fetch_history_events(wait_new_event=follow):
            yield event
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                went = event.workflow_execution_continued_as_new_event_attributes
                run_id = went.new_execution_run_id


async def _first_run(client: Client, workflow_id: str) -> str:
    """The first run id of the chain whose history is still kept."""
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events(page_size=1):
        started = event.workflow_execution_started_event_attributes
        first = started.first_execution_run_id
        try:
            await client.get_workflow_handle(workflow_id, run_id=first).describe()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return started.original_execution_run_id
        return first
    raise AssertionError("a history begins with an event")


def _child(what: str, event: HistoryEvent) -> ChildStep | None:
    names = {"STARTED": "started", "COMPLETED": "completed", "FAILED": "failed",
             "CANCELED": "cancelled", "TIMED_OUT": "timed_out", "TERMINATED": "terminated"}  # fmt: skip
    if what not in names:
        return None
    attributes = getattr(event, event.WhichOneof("attributes") or "")
    return ChildStep.model_validate({
        "at": _time(event),
        "workflow_id": attributes.workflow_execution.workflow_id,
        "workflow_type": attributes.workflow_type.name,
        "what": names[what],
    })  # fmt: skip


def _activity(scheduled: HistoryEvent) -> str:
    return scheduled.activity_task_scheduled_event_attributes.activity_type.name


def _message(failure: Failure) -> str:
    """The innermost cause says what happened; the outer ones say where."""
    while failure.HasField("cause"):
        failure = failure.cause
    return failure.message


def _time(event: HistoryEvent) -> datetime:
    return event.event_time.ToDatetime(tzinfo=UTC)


STEP: TypeAdapter[Step] = TypeAdapter(Step)
