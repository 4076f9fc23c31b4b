"""The tools by which the agents of a tree work together: starts, merges in spawn order, messages."""

from typing import assert_never

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError

from . import calls
from .agent_report import deliver, line, report, short
from .agent_tools import (
    COLLECT_AGENTS,
    PARENT,
    BudgetArgs,
    CollectArgs,
    MessageArgs,
    SpawnArgs,
    Take,
)
from .child import Child
from .children import spawn, wait_for
from .derive import AgentRefused
from .describe import describe_errors
from .ended import RunEnded, failure_code, failure_text, reraise_cancel, stop_if_cancelled
from .ledger import ShareRefused
from .lineage import AgentMessage, BudgetAnswered, BudgetAsked
from .messages import Observation, ToolCall
from .payloads import Merged, MergeInput, MergeOutcome
from .publish import publish
from .result import Outcome
from .state import RunState

_ANSWER_SECONDS = 60
"""For the parent's workflow task, which is never busy for long."""


async def use_agent_tool(
    state: RunState, position: int, call: ToolCall
) -> tuple[Observation, bool]:
    """The call's result, and whether work was merged."""
    try:
        match call.name:
            case "spawn_agents":
                return await _spawn(state, position, SpawnArgs.model_validate(call.arguments))
            case "collect_agents":
                return await _collect(state, CollectArgs.model_validate(call.arguments))
            case "message_agent":
                return await _message(state, MessageArgs.model_validate(call.arguments)), False
            case "request_budget":
                return await _ask_budget(state, BudgetArgs.model_validate(call.arguments)), False
            case name:
                raise RuntimeError(f"{name} is no tool between agents")
    except ValidationError as error:
        return _error(f"{call.name}: {describe_errors(error)}"), False
    except AgentRefused as refused:
        return _error(f"refused: {refused}"), False


async def _spawn(state: RunState, position: int, args: SpawnArgs) -> tuple[Observation, bool]:
    ids = spawn(state, position, args.agents)
    publish(state)
    if not args.wait:
        names = "\n".join(f"{short(state, i)}: {line(state.children.known[i].goal)}" for i in ids)
        return Observation(text=f"Started; collect them with {COLLECT_AGENTS}.\n{names}"), False
    return await _gather(state, ids, args.merge)


async def _collect(state: RunState, args: CollectArgs) -> tuple[Observation, bool]:
    known = state.children.known
    ids = tuple(_known(state, name).id for name in args.agents)
    ids = ids or tuple(c.id for c in known.values() if not c.collected)
    if not args.wait:
        ids = tuple(i for i in ids if known[i].ended)
    if not ids:
        running = len(state.children.running)
        return Observation(text=f"Nothing to collect; {running} agents run."), False
    return await _gather(state, ids, args.merge)


async def _gather(state: RunState, ids: tuple[str, ...], take: Take) -> tuple[Observation, bool]:
    await wait_for(state, ids)
    head, reports = state.head, []
    # Spawn order, whatever was asked.
    ended = [c for c in state.children.known.values() if c.id in ids and c.ended]
    for child in ended:
        outcome = await _merge(state, child) if _is_due(child, take) else None
        if isinstance(outcome, Merged):
            state.head = outcome.head
        state.children.change(
            child.id, collected=True, merged=child.merged or isinstance(outcome, Merged)
        )
        reports.append(report(state, child, outcome, len(ended)))
    if len(ended) < len(ids):
        still = ", ".join(short(state, i) for i in ids if not state.children.known[i].ended)
        reports.append(
            f"You have messages, which follow. Still running: {still}. Collect them when you have "
            "read them."
        )
    publish(state)
    failed = bool(ended) and all(child.failed for child in ended)
    return Observation(text="\n\n".join(reports), is_error=failed), state.head != head


def _is_due(child: Child, take: Take) -> bool:
    if child.report is None or child.merged or child.report.head == child.report.base:
        return False
    return take == "any" or (take == "verified" and child.verified)


async def _merge(state: RunState, child: Child) -> MergeOutcome:
    made = child.report
    assert made is not None
    assert made.base is not None
    assert made.head is not None
    name = short(state, child.id)
    arg = MergeInput(
        run=state.scope,
        head=state.head,
        child_base=made.base,
        child_head=made.head,
        title=f"{state.step}: merge of agent {name}: {line(child.goal)}",
    )
    try:
        return await calls.merge(arg, state.tools_queue, f"merge the work of {name}")
    except ActivityError as error:
        reraise_cancel(error)
        raise RunEnded(
            Outcome.ESCALATED,
            f"the work of a sub-agent could not be merged: {failure_text(error)}",
            code=failure_code(error),
        ) from error


# --- messages -------------------------------------------------------------------------------------


async def _message(state: RunState, args: MessageArgs) -> Observation:
    message = AgentMessage(agent=state.tree.me, text=args.text)
    if args.to == PARENT:
        if state.lineage is None:
            raise AgentRefused("to: you have no parent")
        if not await state.tree.post(state.lineage.parent, message):
            raise AgentRefused("to: your parent has ended")
        return Observation(text="Sent.")
    child = _known(state, args.to)
    match child.state:
        case "queued":
            state.children.letters.setdefault(child.id, []).append(message)
            return Observation(text="It reads this when it starts.")
        case "running":
            if await state.tree.post(child.id, message):
                return Observation(text="Sent.")
        case "ended":
            pass
        case _:
            assert_never(child.state)
    raise AgentRefused(f"to: {args.to} has ended")


def read_inbox(state: RunState) -> None:
    """Show the model what other agents wrote, each message once."""
    for message in state.tree.inbox:
        state.transcript.append(deliver(state, message))
    state.tree.inbox.clear()


def _known(state: RunState, name: str) -> Child:
    child = state.children.known.get(f"{state.tree.me}/{name}")
    if child is None:
        raise AgentRefused(f"there is no agent {name!r}")
    return child


# --- more budget ----------------------------------------------------------------------------------


async def _ask_budget(state: RunState, args: BudgetArgs) -> Observation:
    """Ask the parent's ledger for more, once in a run's life."""
    lineage, tree = state.lineage, state.tree
    assert lineage is not None
    if state.asked_budget:
        raise AgentRefused("you have asked for more budget before; it is given once at most")
    state.asked_budget = True
    stop_if_cancelled()
    tree.post(
        lineage.parent, BudgetAsked(agent=tree.me, tokens=args.tokens, usd=args.usd, why=args.why)
    )
    try:
        await workflow.wait_condition(
            lambda: tree.budget_answer is not None, timeout=_ANSWER_SECONDS
        )
    except TimeoutError:
        raise AgentRefused("your parent did not answer") from None
    answer = tree.budget_answer
    assert answer is not None
    if answer.granted is None:
        raise AgentRefused(answer.refusal)
    state.ledger = state.ledger.extended(answer.granted)
    usd = f" and {answer.granted.usd} USD" if answer.granted.usd else ""
    return Observation(text=f"Granted: {answer.granted.tokens:,} tokens{usd} more.")


def answer_asks(state: RunState) -> None:
    """Give sub-agents that ask what they ask for, but not more than half of what is left."""
    for asked in state.tree.budget_asks:
        child = state.children.known.get(asked.agent)
        if child is None or child.ended:
            continue
        state.tree.post(child.id, _answer(state, child, asked))
        state.children.change(child.id, got_more=True)
    state.tree.budget_asks.clear()


def _answer(state: RunState, child: Child, asked: BudgetAsked) -> BudgetAnswered:
    if child.got_more:
        return BudgetAnswered(granted=None, refusal="more budget is given once at most")
    try:
        state.ledger, more = state.ledger.grant(asked.tokens, asked.usd)
    except ShareRefused as refused:
        return BudgetAnswered(granted=None, refusal=str(refused))
    state.children.change(child.id, share=child.share.plus(more))
    return BudgetAnswered(granted=more)


def _error(text: str) -> Observation:
    return Observation(text=text, is_error=True)
