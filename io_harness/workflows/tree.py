"""A run's place in its tree: slots to work in, messages, and what humans are asked in it."""

import asyncio
from dataclasses import dataclass, field
from typing import assert_never

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from .approvals import Decision, PendingApproval
from .lineage import (
    AgentAsks,
    AgentDecided,
    AgentEnded,
    AgentMessage,
    BudgetAnswered,
    BudgetAsked,
    Lineage,
    SlotFreed,
    SlotGranted,
    SlotWanted,
    TreeMessage,
)
from .slots import Slots, is_within


@dataclass
class Tree:
    """What one run knows of its tree. The root decides who may work; the others ask it by signal."""

    me: str
    """This run's workflow id."""
    lineage: Lineage | None
    """None: this is the root."""
    inbox: list[AgentMessage] = field(default_factory=list)
    """Messages that the model has not seen yet."""
    budget_asks: list[BudgetAsked] = field(default_factory=list)
    """Of sub-agents, not answered yet."""
    budget_answer: BudgetAnswered | None = None
    asked: dict[str, AgentAsks] = field(default_factory=dict)
    """At the root: requests of descendants, by the id under which they are decided here."""
    outbox: set[asyncio.Task[bool]] = field(default_factory=set)
    """What is on its way to others."""

    def __post_init__(self) -> None:
        self._slots = Slots(limit=1)
        self._granted: set[str] = set()

    def limit(self, concurrent: int) -> None:
        """At the root: so many may work at the same time."""
        self._slots.limit = concurrent

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """Requests of descendants, as they are shown at the root."""
        return tuple(
            asks.pending.model_copy(update={"id": shown, "agent": asks.agent})
            for shown, asks in self.asked.items()
        )

    def tell(self, message: TreeMessage) -> None:
        """To the root, which may be this run."""
        if self.lineage is None:
            self.take(message)
        else:
            self.post(self.lineage.root, message)

    def take(self, message: TreeMessage) -> None:
        """A message has come."""
        match message:
            case SlotWanted():
                self._slots.want(message.agent, message.by)
            case SlotFreed():
                self._slots.free(message.agent)
            case SlotGranted():
                self._granted.add(message.agent)
            case AgentEnded():
                self._slots.end(message.agent)
                self.asked = {
                    shown: asks
                    for shown, asks in self.asked.items()
                    if not is_within(asks.agent, message.agent)
                }
            case AgentAsks():
                self.asked[self.shown(message)] = message
            case AgentDecided():
                self.asked.pop(self._shown(message.agent, message.request), None)
            case AgentMessage():
                self.inbox.append(message)
            case BudgetAsked():
                self.budget_asks.append(message)
            case BudgetAnswered():
                self.budget_answer = message
            case _:
                assert_never(message)
        for agent, by in self._slots.grant():
            if by == self.me:
                self._granted.add(agent)
            else:
                self.post(by, SlotGranted(agent=agent))

    def shown(self, asks: AgentAsks) -> str:
        """The id under which a descendant's request is decided here."""
        return self._shown(asks.agent, asks.pending.id)

    def forward(self, decision: Decision) -> bool:
        """Send a decision on to the descendant whose request it names; False if it names none."""
        asks = self.asked.get(decision.request)
        if asks is None:
            return False
        own = decision.model_copy(update={"request": asks.pending.id})
        self._send(asks.agent, "decide", own)
        return True

    def want(self, agent: str) -> None:
        """Ask for a slot for this run or a sub-agent of it."""
        self.tell(SlotWanted(agent=agent, by=self.me))

    def may_work(self, agent: str) -> bool:
        """Whether the agent, for whom this run asked, has its slot."""
        return agent in self._granted

    def free(self) -> None:
        """This run waits for others and leaves its slot to them."""
        self._granted.discard(self.me)
        self.tell(SlotFreed(agent=self.me))

    def ended(self, agent: str) -> None:
        """A sub-agent of this run and all that descend from it are over."""
        self._granted.discard(agent)
        self.tell(AgentEnded(agent=agent))

    def post(self, to: str, message: TreeMessage) -> "asyncio.Task[bool]":
        """Send a message, which arrives once.

        Returns:
            Whether the run at the other end still took it.
        """
        return self._send(to, "tree", message)

    def _send(self, to: str, signal: str, message: TreeMessage | Decision) -> "asyncio.Task[bool]":
        task = asyncio.create_task(_signal(to, signal, message))
        self.outbox.add(task)
        task.add_done_callback(self.outbox.discard)
        return task

    def _shown(self, agent: str, request: str) -> str:
        return f"{agent.removeprefix(self.me + '/')}:{request}"


async def _signal(to: str, signal: str, message: TreeMessage | Decision) -> bool:
    try:
        await workflow.get_external_workflow_handle(to).signal(signal, message)
    except ApplicationError as error:
        # It has ended: a root takes its tree with it, and an agent's end is told by its parent.
        workflow.logger.info("%s no longer takes signals: %s", to, error)
        return False
    return True
