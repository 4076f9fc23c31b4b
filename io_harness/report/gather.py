"""Reads a run's whole history, and those of its sub-agents, into one `Report`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property

from pydantic import JsonValue
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from io_harness import trace
from io_harness.workflows.briefing import Briefing, ToolDefinition, first_message
from io_harness.workflows.egress import EgressCount, added
from io_harness.workflows.mcp import McpTools
from io_harness.workflows.payloads import ToolDone
from io_harness.workflows.result import (
    IsolationReport,
    Landed,
    LandReport,
    RunResult,
    Spend,
    Usage,
    VerificationReport,
)

from .approvals import Approval, approvals_of

_AGENT = "AgentRun"


@dataclass(frozen=True)
class Report:
    """A run as its history tells it. What a running run has not got yet is summed up to now."""

    steps: tuple[trace.Step, ...]
    running: tuple[trace.Running, ...]
    """Activities that have begun and not ended."""
    read: datetime
    """When the history was read."""
    children: tuple["Report", ...] = ()
    missing: tuple[str, ...] = field(default=())
    """Sub-agents whose history the server no longer keeps."""

    @property
    def began(self) -> trace.Began:
        (first, *_) = (step for step in self.steps if isinstance(step, trace.Began))
        return first

    @property
    def parts(self) -> int:
        """How many workflow runs the history is spread over."""
        return sum(isinstance(step, trace.Began) for step in self.steps)

    @property
    def contract(self) -> dict[str, JsonValue]:
        return self.began.contract

    @property
    def constraints(self) -> tuple[str, ...]:
        """Those that the contract names; it may be one that was refused as invalid."""
        named = self.contract.get("constraints")
        return tuple(map(str, named)) if isinstance(named, list) else ()

    @property
    def ended(self) -> trace.EndedStep | None:
        last = self.steps[-1]
        return last if isinstance(last, trace.EndedStep) else None

    @property
    def result(self) -> RunResult | None:
        return self.ended.result if self.ended else None

    @property
    def seconds(self) -> float:
        """From the start to the end, or to now."""
        end = self.ended.at if self.ended else self.read
        return max((end - self.began.at).total_seconds(), 0)

    @cached_property
    def approvals(self) -> tuple[Approval, ...]:
        return approvals_of(self.steps)

    @cached_property
    def spend(self) -> Spend:
        return self.result.spend if self.result else _spent(self.steps)

    @property
    def models(self) -> tuple[str, ...]:
        """Which models served, in the order of their first reply."""
        served = (
            s.completion.message.served_by for s in self.steps if isinstance(s, trace.ModelStep)
        )
        return tuple(dict.fromkeys(f"{ref.provider}/{ref.name}" for ref in served))

    @property
    def briefing(self) -> Briefing | None:
        """None: the run was not admitted, or by a release that did not tell."""
        admitted = (s.briefing for s in self.steps if isinstance(s, trace.AdmittedStep))
        return next(admitted, None)

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """All that the model was offered; those of MCP servers as they were listed last."""
        own = self.briefing.tools if self.briefing else ()
        lists = [s.listing for s in self.steps if isinstance(s, trace.ListedStep)]
        listed = next((each for each in reversed(lists) if isinstance(each, McpTools)), McpTools())
        more = (
            ToolDefinition(name=t.name, description=t.description, input_schema=t.input_schema)
            for t in listed.tools
        )
        return (*own, *more)

    @property
    def first_message(self) -> str:
        """What the model read first after the system prompt."""
        prepared = (s.prepared for s in self.steps if isinstance(s, trace.PreparedStep))
        instructions = next((found.instructions for found in prepared), None)
        return first_message(self.began.goal, self.constraints, instructions)

    @property
    def refused(self) -> tuple[trace.ToolStep, ...]:
        """Tool calls that the policy refused."""
        return tuple(
            step
            for step in self.steps
            if isinstance(step, trace.ToolStep)
            and isinstance(step.outcome, ToolDone)
            and step.outcome.refused
        )

    @property
    def verifications(self) -> tuple[trace.VerifiedStep, ...]:
        return tuple(step for step in self.steps if isinstance(step, trace.VerifiedStep))

    @property
    def verification(self) -> VerificationReport | None:
        """The last one. Only the run's result has its reviews, which are model calls."""
        if self.result is not None and self.result.verification is not None:
            return self.result.verification
        return self.verifications[-1].report if self.verifications else None

    @property
    def landing(self) -> LandReport | None:
        for step in reversed(self.steps):
            if isinstance(step, trace.LandedStep) and step.report.kind != "needs_approval":
                return step.report
        return None

    @property
    def diff(self) -> str:
        """What landed; of work that waits to land, what is to be approved."""
        if isinstance(self.landing, Landed):
            return self.landing.diff
        shown = (a.request for a in self.approvals if a.request and a.request.act == "land")
        return next((request.preview for request in shown), "")

    @property
    def isolation(self) -> IsolationReport | None:
        prepared = (s.prepared for s in self.steps if isinstance(s, trace.PreparedStep))
        return next((found.isolation for found in prepared), None)

    @property
    def egress(self) -> tuple[EgressCount, ...]:
        if self.result:
            return self.result.egress
        counts: tuple[EgressCount, ...] = ()
        for step in self.steps:
            counts = added(counts, _egress(step))
        return counts


async def gather(client: Client, workflow_id: str) -> Report:
    """Read the run `workflow_id` up to now, across continue-as-new, with its sub-agents.

    Raises:
        temporalio.service.RPCError: with status NOT_FOUND, if there is no such run.
    """
    tracer = trace.Tracer(client)
    events = trace.events(client, workflow_id)
    steps = [step async for event in events if (step := await tracer.feed(event)) is not None]
    children: list[Report] = []
    missing: list[str] = []
    for step in steps:
        if (
            not isinstance(step, trace.ChildStep)
            or step.what != "started"
            or step.workflow_type != _AGENT
        ):
            continue
        try:
            children.append(await gather(client, step.workflow_id))
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            missing.append(step.workflow_id)
    return Report(
        steps=tuple(steps),
        running=tracer.running,
        read=datetime.now(UTC),
        children=tuple(children),
        missing=tuple(missing),
    )


def _spent(steps: Sequence[trace.Step]) -> Spend:
    usage, usd, calls, tools, unpriced = Usage(), Decimal(0), 0, 0, 0
    for step in steps:
        if isinstance(step, trace.ModelStep):
            calls += 1
            usage = usage + step.completion.usage + step.completion.retried
            usd += step.completion.cost_usd or 0
            unpriced += step.completion.cost_usd is None
        elif isinstance(step, trace.ToolStep):
            tools += isinstance(step.outcome, ToolDone)
    return Spend(steps=calls, tool_calls=tools, usage=usage, usd=usd, unpriced_calls=unpriced)


def _egress(step: trace.Step) -> tuple[EgressCount, ...]:
    match step:
        case trace.PreparedStep():
            return step.prepared.egress
        case trace.ModelStep():
            return step.completion.egress
        case trace.ToolStep():
            return step.outcome.egress if step.outcome.kind != "would_act" else ()
        case trace.VerifiedStep():
            return step.report.egress
        case _:
            return ()
