"""Arguments of the tools by which the agents of a tree work together."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .contract import TaskContract
from .model import Strict

SPAWN_AGENTS = "spawn_agents"
COLLECT_AGENTS = "collect_agents"
MESSAGE_AGENT = "message_agent"
REQUEST_BUDGET = "request_budget"
AGENT_TOOLS = (SPAWN_AGENTS, COLLECT_AGENTS, MESSAGE_AGENT, REQUEST_BUDGET)
PARENT = "parent"

Take = Literal["verified", "any", "none"]
"""Whose work is merged: that of agents whose criterion passed, any, or none."""


Usd = Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=6)]


class AgentTask(Strict):
    """One sub-agent. It sees your files as they are now and nothing of this conversation."""

    goal: str = Field(min_length=1, max_length=30_000)
    verification: dict[str, JsonValue]
    """Criterion of its work, such as {"kind": "command", "run": "pytest -q tests/x.py"},
    {"kind": "file_contains", "path": "a.md", "text": "x"}, or {"kind": "none"}. Commands of it must
    be allowed by your policy without asking."""
    paths: tuple[str, ...] = Field(default=(), max_length=100)
    """Files or folders that it is about."""
    agent: str | None = None
    """Kind of agent, by name."""
    model: str | None = None
    """provider/name of one of the contract's models."""
    policy: str | dict[str, JsonValue] | None = None
    """Narrows your policy: read-only, careful or unattended, or a whole policy."""
    tokens: int | None = Field(default=None, ge=1)
    """Its share of your budget; by default an equal part of half of what is left."""
    usd: Usd | None = None
    steps: int | None = Field(default=None, ge=1)
    agents: int = Field(default=0, ge=0)
    """How many sub-agents it may start itself, out of those that you still may."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the structured answer that it must give."""


class SpawnArgs(Strict):
    agents: tuple[AgentTask, ...] = Field(min_length=1, max_length=200)
    wait: bool = True
    """Wait for all of them and merge their work in this order; else collect it later."""
    merge: Take = "verified"


class CollectArgs(Strict):
    agents: tuple[str, ...] = ()
    """Ids; empty: all whose results were not collected yet."""
    wait: bool = True
    """Wait until they have ended; else only those that have are collected."""
    merge: Take = "verified"
    """`any` also merges the work of an agent that failed."""


class MessageArgs(Strict):
    to: str
    """Id of a sub-agent of yours, or `parent`."""
    text: str = Field(min_length=1, max_length=8_000)


class BudgetArgs(Strict):
    tokens: int = Field(ge=1)
    usd: Usd | None = None
    """Needed where the budget has a limit in USD."""
    why: str = Field(min_length=1, max_length=500)


def agent_tools(contract: TaskContract, *, sub_agent: bool) -> tuple[str, ...]:
    """Those that a run is offered."""
    leads = contract.containment is not None
    return (
        *((SPAWN_AGENTS, COLLECT_AGENTS) if leads else ()),
        *((MESSAGE_AGENT,) if leads or sub_agent else ()),
        *((REQUEST_BUDGET,) if sub_agent else ()),
    )
