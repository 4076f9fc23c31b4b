"""The workflow `AgentRun`: from a task contract to a verified result.

Handlers only change state; the loop does the work. There is no clock, randomness, environment, file
or network here but what the workflow API gives.
"""

import asyncio
from typing import NoReturn

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.workflow import ContinueAsNewVersioningBehavior

from io_harness import __version__

from . import calls
from .agent_turn import answer_asks, read_inbox
from .approvals import ApprovalBook, Decision, PendingApproval, UnknownRequest, fits
from .briefing import first_message
from .children import end_all, settle
from .contract import TaskContract
from .describe import describe_errors
from .ended import RunEnded, failure_code, failure_text, reraise_cancel
from .ending import conclude, judge
from .fold import lighten
from .keys import contract_digest, run_key
from .ledger import BudgetEnded, Ceiling, Ledger
from .lineage import AgentAsks, Lineage, TreeMessage
from .mcp import McpTools
from .mcp_turn import refresh_mcp_tools
from .messages import UserMessage
from .model_turn import next_message
from .own_tools import FinishArgs
from .payloads import AdmitInput, PrepareInput, RunScope
from .publish import attributes_of_continuation, publish
from .result import Outcome, RunResult, Spend
from .state import Carried, RunState
from .status import ResultSoFar, RunStatus, result_so_far, status_of
from .tool_turn import Turn
from .transcript import Transcript, TranscriptPage
from .tree import Tree

_EVENTS = 2_000
_HISTORY_BYTES = 2_000_000
_COPY_SECONDS = 1_800
_WITH_AGENTS = 5
"""So many times as long a history may get before a run stands still for sub-agents that it has to wait
for. It stays under the 10,240 events and 10 MB from which on the server warns."""
_MALFORMED_TURNS = 3


# Outside of the SDK's sandbox: as these modules pass through it, it would restrict nothing, and take a
# fifth of the workflow's processor time. A test replays the workflow under its full restrictions.
@workflow.defn(name="AgentRun", sandboxed=False)
class AgentRun:
    """Runs an agent until its work is verified, or until a budget, a human or a failure ends it."""

    @workflow.init
    def __init__(self, contract: JsonValue, before: Carried | Lineage | None = None) -> None:
        self._given = contract
        self._invalid = ""
        self._contract: TaskContract | None = None
        self._book = ApprovalBook(before.book if isinstance(before, Carried) else None)
        self._tree = _tree_of(before)
        self._state: RunState | None = None
        try:
            self._contract = TaskContract.model_validate(contract)
            if self._contract.containment is not None:
                self._tree.limit(self._contract.containment.concurrent)
        except ValidationError as error:  # an exception here would loop the workflow task for ever
            self._invalid = _refusal(error)

    @workflow.run
    async def run(self, contract: JsonValue, before: Carried | Lineage | None = None) -> RunResult:
        """
        Args:
            before: What a continuation goes on from, or where a sub-agent stands in its tree.
        """
        if self._contract is None:
            raise ApplicationError(self._invalid, type="InvalidContract", non_retryable=True)
        try:
            state = await self._start(self._contract, before)
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
            return RunResult(outcome=Outcome.CANCELLED, reason="cancelled before the first step")
        self._state = state
        ended = await self._until_ended(state)
        ending = asyncio.create_task(_end(state, ended))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            return await ending  # what is over can't be cancelled; its result stands

    async def _until_ended(self, state: RunState) -> RunEnded:
        try:
            await self._loop(state)
        except RunEnded as error:
            return error
        except BudgetEnded as error:
            return RunEnded(error.outcome, error.reason)
        except (asyncio.CancelledError, ActivityError) as error:
            if is_cancelled_exception(error):
                return RunEnded(Outcome.CANCELLED, "cancelled by request")
            raise

    async def _loop(self, state: RunState) -> NoReturn:
        """The agent's loop. Left by RunEnded, BudgetEnded, cancellation, or continue-as-new."""
        while True:
            state.activity = "working"
            read_inbox(state)
            publish(state)
            await refresh_mcp_tools(state)
            completion = await next_message(state)
            turn = Turn(state, completion)
            await turn.answer()
            if turn.claim is not None:
                await judge(state, turn.claim, turn.claim_call)
            elif not turn.calls and completion.finish != "paused":
                await self._silent(state, completion.message.text)
            self._pace(state, turn)
            if self._must_continue_as_new(state):
                await settle(state)
                state.activity = "working"
                lighten(state)
                attributes = attributes_of_continuation(state)
                workflow.continue_as_new(
                    args=[self._given, state.carried()],
                    search_attributes=attributes,
                    # Of a versioned worker: the run goes on with the version that is current now.
                    initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                )

    async def _start(self, contract: TaskContract, before: Carried | Lineage | None) -> RunState:
        if isinstance(before, Carried):
            return RunState.resumed(contract, before, self._book, self._tree)
        first = contract.models[0]
        workflow.logger.info("run began", extra={"model": f"{first.provider}/{first.name}"})
        scope = RunScope(
            key=_run_key(),
            contract_digest=contract_digest(self._given),
            sub_agent=before is not None,
        )
        started = workflow.time()
        seconds = contract.workspace.setup_seconds + _COPY_SECONDS
        queue = contract.sandbox.task_queue
        try:
            admitted = await calls.admit(AdmitInput(run=scope), "check models and credentials")
            prepared = await calls.prepare(
                PrepareInput(run=scope, origin=before.origin if before else None),
                calls.Options(attempt_seconds=seconds, total_seconds=seconds * 2, task_queue=queue),
                "prepare the workspace",
            )
        except ActivityError as error:
            reraise_cancel(error)
            raise ApplicationError(
                failure_text(error), type=failure_code(error), non_retryable=True
            ) from error
        opening = first_message(contract.goal, contract.constraints, prepared.instructions)
        return RunState(
            contract=contract,
            scope=scope,
            admitted=admitted,
            prepared=prepared,
            egress=prepared.egress,
            head=prepared.base,
            transcript=Transcript([UserMessage(origin="goal", text=opening)]),
            ledger=Ledger(budget=contract.budget, ceiling=_ceiling(contract)),
            book=self._book,
            tree=self._tree,
            started_at=started,
        )

    async def _silent(self, state: RunState, text: str) -> None:
        """A turn without a tool call: asked once to go on or finish; the second one is a claim."""
        state.silent_turns += 1
        if state.silent_turns == 1:
            nudge = "You called no tool. Go on with the task, or call finish if you are done."
            state.transcript.append(UserMessage(origin="nudge", text=nudge))
            return
        state.silent_turns = 0
        await judge(state, FinishArgs(summary=text[:20_000] or "(no summary)"), None)

    def _pace(self, state: RunState, turn: Turn) -> None:
        """End a run that gets nowhere: malformed calls in a row, or the same again and again."""
        if turn.calls:
            state.silent_turns = 0
            usable = turn.completion.finish != "length" and turn.results
            state.malformed_turns = 0 if usable or turn.claim else state.malformed_turns + 1
            if state.malformed_turns >= _MALFORMED_TURNS:
                raise RunEnded(
                    Outcome.ESCALATED,
                    f"{_MALFORMED_TURNS} replies in a row held no tool call that could be used",
                    code="MalformedReplies",
                )
        state.progress, pace = state.progress.after_turn(
            tuple(turn.results), changed=turn.changed or turn.claim is not None
        )
        if pace == "stalled":
            raise RunEnded(Outcome.STALLED, "the agent repeats itself and changes nothing")
        if pace == "nudge":
            state.transcript.append(
                UserMessage(
                    origin="nudge",
                    text="You repeat calls whose results you have already seen, and nothing "
                    "changes. Try another way, or call finish and say what is in the way.",
                )
            )

    def _must_continue_as_new(self, state: RunState) -> bool:
        """Whether the history is long, or another version of the worker is current. With sub-agents at
        work, which a continuation would have to wait for, only when the history gets too long."""
        info = workflow.info()
        events, size = info.get_current_history_length(), info.get_current_history_size()
        if state.children.running:
            return events >= _EVENTS * _WITH_AGENTS or size >= _HISTORY_BYTES * _WITH_AGENTS
        return (
            info.is_continue_as_new_suggested()
            or events >= _EVENTS
            or size >= _HISTORY_BYTES
            or info.is_target_worker_deployment_version_changed()
        )

    # --- handlers ---------------------------------------------------------------------------------

    @workflow.signal
    def decide(self, decision: Decision) -> None:
        """A human's decision. What can't take effect is logged and changes nothing. One on a request
        of a sub-agent goes on to it."""
        if not self._tree.forward(decision):
            self._book.decide(decision, workflow.time())

    @workflow.update
    def submit_decision(self, decision: Decision) -> str:
        """As `decide`, but an unknown, stale or second decision is rejected to its sender."""
        if self._tree.forward(decision):
            return "forwarded"
        self._book.decide(decision, workflow.time())
        return "applied"

    @submit_decision.validator
    def _check_decision(self, decision: Decision) -> None:
        asked = self._tree.asked.get(decision.request)
        if asked is not None and fits(decision, asked.pending):
            return
        try:
            self._book.check(decision)
        except UnknownRequest as error:
            raise ApplicationError(str(error), type="UnknownRequest") from None

    @workflow.signal
    def tree(self, message: TreeMessage) -> None:
        """From another agent of the tree; not for people."""
        self._tree.take(message)
        if isinstance(message, AgentAsks):
            early = self._book.take_early(self._tree.shown(message))
            if early is not None:
                self._tree.forward(early)
        if self._state is not None:
            answer_asks(self._state)
            publish(self._state)

    @workflow.query
    def status(self) -> RunStatus:
        if self._state is not None:
            return status_of(self._state)
        if self._contract is None:
            raise ApplicationError(self._invalid, type="InvalidContract")
        return RunStatus(
            state="preparing",
            goal=self._contract.goal,
            step=0,
            spend=Spend(),
            budget=self._contract.budget,
            head=None,
            pending=(),
        )

    @workflow.query
    def contract(self) -> JsonValue:
        """The contract as it was given: a worker of another release reads it by its own schema."""
        if self._contract is None:
            raise ApplicationError(self._invalid, type="InvalidContract")
        return self._given

    @workflow.query
    def transcript(self, start: int = 0) -> TranscriptPage:
        """One page of the transcript, from message `start` on."""
        if self._state is None:
            return TranscriptPage(start=start, messages=(), total=0)
        return self._state.transcript.page(start)

    @workflow.query
    def mcp_tools(self) -> McpTools:
        """The recorded list of MCP tools; empty before the first listing."""
        recorded = self._state.mcp.tools if self._state is not None else None
        return recorded or McpTools()

    @workflow.query
    def result_so_far(self) -> ResultSoFar | None:
        return result_so_far(self._state) if self._state is not None else None

    @workflow.query
    def pending_approvals(self) -> tuple[PendingApproval, ...]:
        """Of this run and, at the root of a tree, of all its agents."""
        return (*self._book.pending, *self._tree.pending)


async def _end(state: RunState, ended: RunEnded) -> RunResult:
    await end_all(state)
    return await conclude(state, ended)


def _refusal(error: ValidationError) -> str:
    """What is wrong with a contract; an unknown field may be one that a later release knows."""
    wrong = describe_errors(error)
    if any(each["type"] == "extra_forbidden" for each in error.errors()):
        wrong += (
            f"; this worker runs io-harness {__version__}, and knows no field of a later release"
        )
    return wrong


def _tree_of(before: Carried | Lineage | None) -> Tree:
    lineage = before.lineage if isinstance(before, Carried) else before
    inbox = list(before.inbox) if isinstance(before, Carried) else []
    return Tree(me=workflow.info().workflow_id, lineage=lineage, inbox=inbox)


def _ceiling(contract: TaskContract) -> Ceiling:
    tree = contract.containment
    if tree is None:
        return Ceiling()
    return Ceiling(tokens=tree.tokens, usd=tree.usd, wall_seconds=tree.wall_seconds)


def _run_key() -> str:
    info = workflow.info()
    return run_key(info.workflow_id, info.first_execution_run_id)
