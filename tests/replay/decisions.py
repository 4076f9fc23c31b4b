"""What a workflow decides in a replay, as digests beside those of the history."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle


@dataclass(frozen=True)
class Decision:
    """One activity that the workflow scheduled."""

    activity: str
    argument: BaseModel

    @property
    def digest(self) -> str:
        return _digest(self.activity, self.argument)


def _digest(activity: str, argument: BaseModel) -> str:
    return hashlib.sha256(f"{activity}\n{argument.model_dump_json()}".encode()).hexdigest()


@dataclass
class Decisions(Interceptor):
    """Interceptor of a replayer: keeps what the workflow schedules."""

    made: list[Decision] = field(default_factory=list)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        made = self.made

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
                (argument,) = input.args
                made.append(Decision(input.activity, argument))
                return super().start_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


def recorded(history: WorkflowHistory, made: Sequence[Decision]) -> list[str]:
    """The digests of what history has scheduled, each input read as the workflow's code reads it now:
    a field that is new since counts as its default."""
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    types = {each.activity: type(each.argument) for each in made}
    return [
        _digest(
            each.activity_type.name,
            types[each.activity_type.name].model_validate_json(each.input.payloads[0].data),
        )
        for each in scheduled
    ]
