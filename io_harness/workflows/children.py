"""The sub-agents of one run: started, waited for, settled in the ledger, ended with the run.

None of its tasks is ever cancelled. The SDK answers a cancellation that comes while a child's start is
under way with a command that the server refuses, and drops one that comes when a result does; so each
task looks by itself whether the run is over (`stopping`), and only then asks its child to end.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError

from . import calls
from .agent_tools import AgentTask
from .child import Child, Report
from .contract import TaskContract
from .derive import AgentRefused, derive, share_of
from .ended import stop_if_cancelled
from .ledger import ShareRefused
from .lineage import AgentMessage, Lineage
from .payloads import Origin
from .result import RunResult, Spend

if TYPE_CHECKING:
    from .state import RunState

_PAUSES = (1, 2, 4, 8, 16)
"""Seconds between tries to start a sub-agent whose former self has still to end."""
_Handle = workflow.ChildWorkflowHandle[object, RunResult]


@dataclass
class Children:
    """In the order in which they were spawned."""

    known: dict[str, Child] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    letters: dict[str, list[AgentMessage]] = field(default_factory=dict)
    """Messages to those that have not started yet."""
    started: int = 0
    """Those ever started, and what those that ended started in turn."""
    closing: bool = False
    """The run is over, and its sub-agents are to end."""
    one_start: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Starts go one by one: each carries a contract, and a workflow task takes 4 MB at most."""

    @property
    def running(self) -> tuple[Child, ...]:
        """Those that have not ended."""
        return tuple(child for child in self.known.values() if not child.ended)

    @property
    def allotted(self) -> int:
        """What running ones may still start themselves."""
        return sum(child.agents for child in self.running)

    @property
    def stopping(self) -> bool:
        return self.closing or workflow.cancellation_reason() is not None

    def change(self, agent: str, **changes: object) -> None:
        self.known[agent] = self.known[agent].model_copy(update=changes)


def spawn(state: "RunState", position: int, tasks: tuple[AgentTask, ...]) -> tuple[str, ...]:
    """Start sub-agents, all or none.

    Returns:
        Their workflow ids. They come from the run's own id and the tool call's place, so that a
        replay finds the same children.

    Raises:
        AgentRefused: names the cap or the field that is in the way of the first that can't start.
    """
    containment, children = state.contract.containment, state.children
    assert containment is not None
    asked = sum(1 + task.agents for task in tasks)
    left = containment.agents - children.started - children.allotted
    if asked > left:
        raise AgentRefused(
            f"containment.agents: {asked} more were asked for, and {max(left, 0)} of "
            f"{containment.agents} are left"
        )
    try:
        state.ledger.time_to_share(workflow.time() - state.started_at)
    except ShareRefused as refused:
        raise AgentRefused(str(refused)) from None
    ledger, prepared = state.ledger, []
    for index, task in enumerate(tasks):
        try:
            share = share_of(task, state.ledger, len(tasks))
            ledger = ledger.reserve(share)
            contract = derive(state.contract, task, state.ledger, share)
        except (AgentRefused, ShareRefused) as refused:
            raise AgentRefused(f"agents[{index}]: {refused}") from None
        size = len(contract.model_dump_json().encode())
        if size > calls.PAYLOAD_BYTES:
            raise AgentRefused(
                f"agents[{index}]: its contract has {size:,} bytes, over the "
                f"{calls.PAYLOAD_BYTES:,} that one payload may have"
            )
        agent = f"{state.tree.me}/{state.step}.{position}.{index + 1}"
        child = Child(id=agent, goal=task.goal, share=share, agents=task.agents)
        prepared.append((child, contract, _lineage(state, contract)))
    state.ledger = ledger
    for child, contract, lineage in prepared:
        children.known[child.id] = child
        children.started += 1
        children.tasks[child.id] = asyncio.create_task(_live(state, child, contract, lineage))
    return tuple(child.id for child, _, _ in prepared)


def _lineage(state: "RunState", contract: TaskContract) -> Lineage:
    people_wrote_own = state.lineage is None or state.lineage.origin.criterion == "contract"
    same = contract.verification == state.contract.verification
    return Lineage(
        root=state.lineage.root if state.lineage else state.tree.me,
        parent=state.tree.me,
        origin=Origin(
            parent=state.scope.key,
            base=state.head,
            criterion="contract" if people_wrote_own and same else "agent",
        ),
    )


async def _live(state: "RunState", child: Child, contract: TaskContract, lineage: Lineage) -> None:
    """One sub-agent from its wait for a slot to the return of what it didn't spend."""
    children = state.children
    result: RunResult | None = None
    spent: Spend | None = Spend()
    failure = "ended before it started"
    try:
        handle = await _started(state, child, contract, lineage)
        if handle is not None:
            spent, failure = None, ""
            await workflow.wait_condition(lambda: handle.done() or children.stopping)
            if not handle.done():
                handle.cancel()
            result = await handle
    except WorkflowAlreadyStartedError:
        failure = f"a workflow {child.id} runs already"
    except ChildWorkflowError as error:
        cause = error.cause
        failure = cause.message if isinstance(cause, ApplicationError) else str(cause or error)
        failure = failure or "ended without a result"
        if isinstance(cause, ApplicationError):  # raised only before the first model call
            spent = Spend()
    state.tree.ended(child.id)
    report = None
    if result is not None:
        spent = result.spend + result.descendants
        assert state.contract.containment is not None
        report = Report.of(result, state.contract.containment.agents)
        children.started += report.agents
    elif spent is None:  # it was ended from outside, and nobody knows what it did
        children.started += child.agents
    state.ledger = state.ledger.give_back(children.known[child.id].share, spent)
    children.change(child.id, state="ended", report=report, failure=failure)
    children.letters.pop(child.id, None)
    del children.tasks[child.id]


async def _started(
    state: "RunState", child: Child, contract: TaskContract, lineage: Lineage
) -> _Handle | None:
    """The sub-agent once it has a slot; None if the run is over before.

    Raises:
        WorkflowAlreadyStartedError: there is one of its id, and it doesn't end.
    """
    children = state.children
    state.tree.want(child.id)
    await workflow.wait_condition(lambda: state.tree.may_work(child.id) or children.stopping)
    for pause in _PAUSES:
        async with children.one_start:
            if children.stopping:
                return None
            try:
                handle = await _start(child, _in_time(state, contract), lineage)
            except WorkflowAlreadyStartedError:
                # This run was reset to before the start, and the server left the agent running.
                with contextlib.suppress(ApplicationError):  # it has just ended
                    await workflow.get_external_workflow_handle(child.id).cancel()
            else:
                children.change(child.id, state="running")
                for letter in children.letters.pop(child.id, []):
                    state.tree.post(child.id, letter)
                return handle
        await workflow.sleep(pause)
    raise WorkflowAlreadyStartedError(child.id, "AgentRun")


async def _start(child: Child, contract: TaskContract, lineage: Lineage) -> _Handle:
    summary = " ".join(child.goal.split()).encode()[:200].decode(errors="ignore")
    return await workflow.start_child_workflow(
        "AgentRun",
        # Only what was given: a field that a later release adds changes no run that is under way.
        args=[contract.model_dump(mode="json", exclude_unset=True), lineage],
        id=child.id,
        result_type=RunResult,
        # Whatever ends this run, its agents end with it.
        parent_close_policy=workflow.ParentClosePolicy.TERMINATE,
        cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        static_summary=summary,
    )


def _in_time(state: "RunState", contract: TaskContract) -> TaskContract:
    """The contract with what is left of this run's wall time as its own."""
    left = state.wall_left()
    if left is None:
        return contract
    budget = contract.budget.model_copy(update={"wall_seconds": max(int(left), 1)})
    return contract.model_copy(update={"budget": budget})


async def wait_for(
    state: "RunState", ids: tuple[str, ...], *, even_if_written_to: bool = False
) -> None:
    """Wait until the sub-agents have ended or one of them writes. The time is theirs and not this
    run's working time, and the slot of one that waits is another's.

    Args:
        even_if_written_to: Wait on when one writes.

    Raises:
        BudgetEnded: the time for the run or its tree is over.
    """
    known, tree = state.children.known, state.tree

    def over() -> bool:
        written_to = bool(tree.inbox) and not even_if_written_to
        return written_to or all(known[i].ended for i in ids)

    if over():
        return
    stop_if_cancelled()
    state.begin_wait()
    if state.lineage is None:
        await _wait(state, over)
    else:
        tree.free()
        await _wait(state, over)
        tree.want(tree.me)
        await _wait(state, lambda: tree.may_work(tree.me))
    state.end_wait()
    state.clock()


async def _wait(state: "RunState", until: Callable[[], bool]) -> None:
    """Wait, but not longer than the run may last."""
    with contextlib.suppress(TimeoutError):
        await workflow.wait_condition(until, timeout=state.wall_left())


async def settle(state: "RunState") -> None:
    """Let the sub-agents end before a continuation: the server ends children with the execution that
    started them, also when it continues as new.

    Raises:
        BudgetEnded: as `wait_for`.
    """
    running = tuple(child.id for child in state.children.running)
    await wait_for(state, running, even_if_written_to=True)
    await asyncio.shield(asyncio.gather(*state.tree.outbox))


async def end_all(state: "RunState") -> None:
    """Ask all sub-agents to end; wait until they are down and settled, and all that was told to others
    is on its way."""
    state.children.closing = True
    await asyncio.gather(*state.children.tasks.values())
    await asyncio.gather(*state.tree.outbox)
