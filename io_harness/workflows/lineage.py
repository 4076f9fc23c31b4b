"""Where an agent stands in its tree, and what the agents of a tree tell each other by signal."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from .approvals import PendingApproval
from .ledger import Share
from .model import Record
from .payloads import Origin


class Lineage(Record):
    """Second argument of a sub-agent's workflow; a run without one is a root."""

    root: str
    """Workflow id of the tree's root."""
    parent: str
    origin: Origin


class SlotWanted(Record):
    """To the root."""

    kind: Literal["slot_wanted"] = "slot_wanted"
    agent: str
    """Workflow id; so with all below."""
    by: str
    """Run that is to be told when it is granted."""


class SlotGranted(Record):
    """From the root, to who wanted it."""

    kind: Literal["slot_granted"] = "slot_granted"
    agent: str


class SlotFreed(Record):
    """To the root."""

    kind: Literal["slot_freed"] = "slot_freed"
    agent: str


class AgentEnded(Record):
    """To the root, by the parent of the agent."""

    kind: Literal["agent_ended"] = "agent_ended"
    agent: str


class AgentAsks(Record):
    """To the root: a human's decision is needed, which may be given there."""

    kind: Literal["agent_asks"] = "agent_asks"
    agent: str
    pending: PendingApproval


class AgentDecided(Record):
    """To the root: a request of the agent is over, however it was decided."""

    kind: Literal["agent_decided"] = "agent_decided"
    agent: str
    request: str


class AgentMessage(Record):
    """From an agent to its parent or to one of its sub-agents."""

    kind: Literal["agent_message"] = "agent_message"
    agent: str
    """Who writes."""
    text: str


class BudgetAsked(Record):
    """To the parent."""

    kind: Literal["budget_asked"] = "budget_asked"
    agent: str
    tokens: int
    usd: Decimal | None
    why: str


class BudgetAnswered(Record):
    """To the agent that asked."""

    kind: Literal["budget_answered"] = "budget_answered"
    granted: Share | None
    refusal: str = ""
    """Why nothing was granted; names the cap."""


TreeMessage = Annotated[
    SlotWanted
    | SlotGranted
    | SlotFreed
    | AgentEnded
    | AgentAsks
    | AgentDecided
    | AgentMessage
    | BudgetAsked
    | BudgetAnswered,
    Field(discriminator="kind"),
]
"""Payload of the signal `tree`."""
