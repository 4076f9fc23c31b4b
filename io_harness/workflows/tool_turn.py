"""The tool calls of one turn: each gets exactly one result, whatever becomes of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from pydantic import ValidationError
from temporalio.exceptions import ActivityError

from . import calls
from .agent_tools import agent_tools
from .agent_turn import use_agent_tool
from .approvals import Decision
from .ask import ask
from .describe import describe_call, describe_errors
from .ended import RunEnded, failure_code, failure_text, reraise_cancel
from .messages import MalformedToolCall, Observation, ToolCall, ToolMessage
from .own_tools import (
    ASK_USER,
    FINISH,
    UPDATE_PLAN,
    AskUserArgs,
    FinishArgs,
    Plan,
    UpdatePlanArgs,
    question_request,
    retry_request,
)
from .payloads import (
    INLINE_ARGUMENTS_BYTES,
    ApprovalRequest,
    CallReference,
    Completion,
    Grant,
    InlineCall,
    NeedsApproval,
    ToolDone,
    UseToolInput,
    WouldAct,
    arguments_digest,
)
from .result import Outcome
from .state import RunState

_ASK_ROUNDS = 8
"""A call that still asks after so many grants is given up: its preview changes with every look."""

_REMEMBERED_RULES = 100
"""They go along with each call, so they must stay few."""
_ANSWER_BYTES = 128 * 1024

Call = ToolCall | MalformedToolCall


@dataclass
class Turn:
    """Answers the calls of the transcript's last message."""

    state: RunState
    completion: Completion
    claim: FinishArgs | None = None
    claim_call: ToolCall | None = None
    grants: dict[int, list[Grant]] = field(default_factory=dict)
    rewritten: dict[int, ToolCall] = field(default_factory=dict)
    denied: dict[int, Decision | None] = field(default_factory=dict)
    without: dict[int, list[tuple[ApprovalRequest, Decision | None]]] = field(default_factory=dict)
    """Hosts that a human denied to a call, which goes on without them."""
    losses: Counter[int] = field(default_factory=Counter)
    """How often the result of a call that can't be repeated was lost."""
    previewed: bool = False
    changed: bool = False
    results: list[tuple[ToolCall, Observation]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.calls: tuple[Call, ...] = self.completion.message.calls
        self.mark = self.state.transcript.mark

    async def answer(self) -> None:
        """Run the calls in order (neighbouring reads side by side) and append their results. The
        result of a `finish` call is left to whoever verifies the claim."""
        if self.completion.finish == "length":
            for call in self.calls:
                self._append(call, _error("not executed: the reply was cut at its length limit"))
            return
        for group in self._groups():
            self.state.ledger = self.state.ledger.tool_calls(len(group))
            observations = await asyncio.gather(*(self._one(p, self.calls[p]) for p in group))
            for position, observation in zip(group, observations, strict=True):
                if observation is not None:
                    self._append(self.calls[position], observation)

    def _groups(self) -> Iterator[tuple[int, ...]]:
        group: list[int] = []
        for position, call in enumerate(self.calls):
            reads = self.state.effect_of(call.name) == "read"
            if group and (not reads or len(group) == calls.SIDE_BY_SIDE):
                yield tuple(group)
                group = []
            if reads:
                group.append(position)
            else:
                yield (position,)
        if group:
            yield tuple(group)

    async def _one(self, position: int, call: Call) -> Observation | None:
        match call:
            case MalformedToolCall():
                return _error(f"not executed: {call.error}")
            case ToolCall(name="finish"):
                return self._finish(call)
            case ToolCall(name="update_plan"):
                return self._update_plan(call)
            case ToolCall(name="ask_user"):
                return await self._ask_user(position, call)
            case ToolCall() if not self._on_worker(call):
                observation, merged = await use_agent_tool(self.state, position, call)
                self.changed = self.changed or merged
                return observation
            case ToolCall():
                return await self._use(position, call)
            case _:
                assert_never(call)

    # --- tools of the workflow itself -------------------------------------------------------------

    def _finish(self, call: ToolCall) -> Observation | None:
        if self.claim is not None:
            return _error("not executed: finish was already called in this turn")
        try:
            self.claim = FinishArgs.model_validate(call.arguments)
        except ValidationError as error:
            return _error(f"finish: {describe_errors(error)}")
        if len(self.claim.model_dump_json().encode()) > _ANSWER_BYTES:
            self.claim = None
            return _error(
                f"finish: more than {_ANSWER_BYTES:,} bytes; write the long part to a file"
            )
        self.claim_call = call
        return None

    def _update_plan(self, call: ToolCall) -> Observation:
        try:
            args = UpdatePlanArgs.model_validate(call.arguments)
        except ValidationError as error:
            return _error(f"{UPDATE_PLAN}: {describe_errors(error)}")
        self.state.plan = Plan(items=args.items)
        return Observation(text="The plan is updated.")

    async def _ask_user(self, position: int, call: ToolCall) -> Observation:
        try:
            args = AskUserArgs.model_validate(call.arguments)
        except ValidationError as error:
            return _error(f"{ASK_USER}: {describe_errors(error)}")
        request = question_request(args.question)
        (decision,) = await ask(self.state, self.state.step, ((position, request),))
        if decision is None:
            return _error("nobody answered in time; go on with your own best judgement")
        return Observation(text=decision.reason or f"The human says: {decision.verdict}.")

    # --- tools of the worker ----------------------------------------------------------------------

    async def _use(self, position: int, call: ToolCall) -> Observation:
        for _ in range(_ASK_ROUNDS):
            if position in self.denied:
                return _denied(self.denied[position])
            actual = self.rewritten.get(position, call)
            outcome = await self._invoke(position, actual)
            match outcome:
                case Observation():
                    return outcome
                case ToolDone():
                    self.state.count(outcome.egress)
                    self.changed = self.changed or outcome.head != self.state.head
                    self.state.head = outcome.head
                    if outcome.tools_changed:
                        self.state.mcp = self.state.mcp.model_copy(update={"stale": True})
                    return self._noted(position, outcome.observation)
                case NeedsApproval():
                    self.state.count(outcome.egress)
                    await self._approve(position, outcome.requests)
                case WouldAct():
                    raise RuntimeError("use_tool answered a call as if it were a preview")
                case _:
                    assert_never(outcome)
        return _error("not executed: what the call would do changed with every approval")

    def _noted(self, position: int, observation: Observation) -> Observation:
        """The observation, and what humans did to the call."""
        notes = [_without(request, by) for request, by in self.without.get(position, ())]
        if position in self.rewritten:
            changed = _json(self.rewritten[position])
            notes.insert(0, f"(A human changed the arguments to {changed}.)\n")
        return observation.model_copy(update={"text": "".join(notes) + observation.text})

    async def _invoke(
        self, position: int, call: ToolCall, *, preview_only: bool = False
    ) -> ToolDone | NeedsApproval | WouldAct | Observation:
        effect = "read" if preview_only else self.state.effect_of(call.name)
        arg = UseToolInput(
            run=self.state.scope,
            step=self.state.step,
            base=self.state.head,
            call=self._reference(position, call),
            grants=(*self.grants.get(position, ()), *self.state.mcp.grants),
            remembered=tuple(self.state.remembered),
            denied=tuple(request.digest for request, _ in self.without.get(position, ())),
            preview_only=preview_only,
        )
        limit = self.state.tool_seconds(call.name)
        summary = f"{'preview: ' if preview_only else ''}{describe_call(call)}"
        while True:
            options = calls.Options(
                attempt_seconds=limit,
                total_seconds=min(self.state.clock(), limit * 4),
                task_queue=self.state.tools_queue,
            )
            try:
                return await calls.use_tool(arg, options, summary, effect=effect)
            except ActivityError as error:
                reraise_cancel(error)
                self.state.clock()
                if effect != "unrepeatable":
                    raise RunEnded(
                        Outcome.ESCALATED,
                        f"the tool {call.name} could not run: {failure_text(error)}",
                        code=failure_code(error),
                    ) from error
                lost = await self._retry_or_skip(position, call, failure_text(error))
                if lost is not None:
                    return lost

    async def _retry_or_skip(
        self, position: int, call: ToolCall, failure: str
    ) -> Observation | None:
        self.losses[position] += 1
        request = retry_request(call.name, _json(call), failure, self.losses[position])
        (decision,) = await ask(self.state, self.state.step, ((position, request),))
        if decision is not None and decision.verdict == "retry":
            return None
        if decision is not None and decision.verdict == "abort":
            raise RunEnded(Outcome.DENIED, f"a human ended the run after {call.name} was lost")
        return _error("the call's result was lost and it was not repeated; its effect is unknown")

    def _reference(self, position: int, call: ToolCall) -> InlineCall | CallReference:
        if position in self.rewritten or len(_json(call)) <= INLINE_ARGUMENTS_BYTES:
            return InlineCall(call=call)
        return CallReference(transcript=self.mark, position=position)

    # --- approvals --------------------------------------------------------------------------------

    async def _approve(self, position: int, requests: tuple[ApprovalRequest, ...]) -> None:
        asked = [(position, request) for request in requests]
        if not self.previewed:
            self.previewed = True
            asked += await self._preview(position)
        decisions = await ask(self.state, self.state.step, tuple(asked))
        for (at, request), decision in zip(asked, decisions, strict=True):
            self._take(at, request, decision)

    async def _preview(self, position: int) -> list[tuple[int, ApprovalRequest]]:
        """What the turn's later calls would ask, so that a human sees all of it at once."""
        later = [
            (p, call)
            for p, call in enumerate(self.calls)
            if p > position and isinstance(call, ToolCall) and self._on_worker(call)
        ]
        outcomes: list[ToolDone | NeedsApproval | WouldAct | Observation] = []
        for start in range(0, len(later), calls.SIDE_BY_SIDE):
            some = later[start : start + calls.SIDE_BY_SIDE]
            outcomes += await asyncio.gather(
                *(self._invoke(p, call, preview_only=True) for p, call in some)
            )
        return [
            (p, request)
            for (p, _), outcome in zip(later, outcomes, strict=True)
            if isinstance(outcome, NeedsApproval)
            for request in outcome.requests
        ]

    def _on_worker(self, call: ToolCall) -> bool:
        state = self.state
        agents = agent_tools(state.contract, sub_agent=state.lineage is not None)
        return call.name not in (FINISH, UPDATE_PLAN, ASK_USER, *agents)

    def _take(self, position: int, request: ApprovalRequest, decision: Decision | None) -> None:
        if decision is None or decision.verdict != "approve":
            if request.act == "net":
                self.without.setdefault(position, []).append((request, decision))
            else:
                self.denied[position] = decision
            return
        grants = self.grants.setdefault(position, [])
        if decision.edit is not None:
            call = self.calls[position]
            assert isinstance(call, ToolCall)
            self.rewritten[position] = call.model_copy(update={"arguments": decision.edit})
            grants.append(Grant(of="arguments", digest=arguments_digest(decision.edit)))
        else:
            answer = decision.reason if request.act == "question" else ""
            grants.append(Grant(digest=request.digest, answer=answer))
        room = len(self.state.remembered) < _REMEMBERED_RULES
        if decision.remember and request.suggestion is not None and room:
            self.state.remembered.append(request.suggestion)

    def _append(self, call: Call, observation: Observation) -> None:
        self.state.transcript.append(
            ToolMessage(call_id=call.id, name=call.name, observation=observation)
        )
        if isinstance(call, ToolCall):
            self.results.append((call, observation))


def _json(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


def _error(text: str) -> Observation:
    return Observation(text=text, is_error=True)


def _without(request: ApprovalRequest, decision: Decision | None) -> str:
    if decision is None:
        return f"(Nobody approved {request.target} in time.)\n"
    words = f": {decision.reason}" if decision.reason else ""
    return f"({request.target} was denied by {decision.by or 'a human'}{words}.)\n"


def _denied(decision: Decision | None) -> Observation:
    if decision is None:
        return _error("denied: nobody approved it in time. Find another way or finish.")
    words = f": {decision.reason}" if decision.reason else ""
    return _error(f"denied by {decision.by or 'a human'}{words}. It had no effect.")
