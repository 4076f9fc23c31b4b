"""A sub-agent's contract, made from its parent's: never wider in anything."""

from pydantic import TypeAdapter, ValidationError

from .agent_tools import AgentTask
from .contract import (
    Budget,
    Containment,
    Model,
    NamedAgent,
    TaskContract,
    Verification,
)
from .describe import describe_errors
from .ledger import Ledger, Share, part_of
from .mcp_contract import McpServer
from .policy import PolicySpec, policy_of

_VERIFICATION: TypeAdapter[Verification] = TypeAdapter(Verification)
_POLICY: TypeAdapter[PolicySpec] = TypeAdapter(PolicySpec)


class AgentRefused(ValueError):
    """The sub-agent is not started. Says what is wrong or which cap is in the way."""


def derive(parent: TaskContract, task: AgentTask, ledger: Ledger, share: Share) -> TaskContract:
    """The contract of a sub-agent.

    Raises:
        AgentRefused: the task is not valid under the parent's contract.
    """
    kind = _kind(parent, task)
    models = _models(parent, task, kind)
    servers = _servers(parent, kind)
    try:
        policy = policy_of(parent.policy)
        for narrowing in (kind.policy if kind else None, task.policy):
            if narrowing is not None:
                policy = policy.contain(policy_of(_POLICY.validate_python(narrowing)))
        contract = TaskContract.model_validate(
            {
                **{name: getattr(parent, name) for name in parent.model_fields_set},
                "goal": _goal(task, kind),
                "verification": _VERIFICATION.validate_python(task.verification),
                "budget": _budget(parent.budget, task, kind, ledger, share),
                "model": models[0],
                "fallbacks": models[1:],
                "policy": policy,
                "tools": _tools(parent, kind),
                "mcp_servers": servers,
                "output_schema": task.output_schema,
                "containment": _containment(parent, task),
                "agents": _kinds(parent, servers) if task.agents else {},
            }
        )
    except ValidationError as error:
        raise AgentRefused(describe_errors(error)) from None
    if contract.reviews:
        raise AgentRefused(
            "verification: a review names a model to ask, which is for people to say; use another kind"
        )
    return contract


def _kind(parent: TaskContract, task: AgentTask) -> NamedAgent | None:
    if task.agent is None:
        return None
    if task.agent not in parent.agents:
        names = ", ".join(parent.agents) or "none"
        raise AgentRefused(f"agent: there is no kind {task.agent!r}; there are: {names}")
    return parent.agents[task.agent]


def _tools(parent: TaskContract, kind: NamedAgent | None) -> tuple[str, ...] | None:
    if kind is None or kind.tools is None:
        return parent.tools
    if parent.tools is None:
        return kind.tools
    return tuple(name for name in kind.tools if name in parent.tools)


def _servers(parent: TaskContract, kind: NamedAgent | None) -> tuple[McpServer, ...]:
    if kind is None or kind.mcp_servers is None:
        return parent.mcp_servers
    return tuple(server for server in parent.mcp_servers if server.id in kind.mcp_servers)


def _kinds(parent: TaskContract, servers: tuple[McpServer, ...]) -> dict[str, NamedAgent]:
    """The kinds that the sub-agent may start in turn, with no server that it doesn't have."""
    ids = {server.id for server in servers}
    return {
        name: kind
        if kind.mcp_servers is None
        else kind.model_copy(update={"mcp_servers": tuple(i for i in kind.mcp_servers if i in ids)})
        for name, kind in parent.agents.items()
    }


def _models(parent: TaskContract, task: AgentTask, kind: NamedAgent | None) -> tuple[Model, ...]:
    if task.model is None:
        return (kind.model,) if kind and kind.model else parent.models
    known = {f"{m.provider}/{m.name}": m for m in parent.models}
    if task.model not in known:
        raise AgentRefused(f"model: the contract has no {task.model!r}; it has {', '.join(known)}")
    return (known[task.model],)


def _goal(task: AgentTask, kind: NamedAgent | None) -> str:
    parts = [kind.role] if kind else []
    parts.append(task.goal)
    if task.paths:
        parts.append("It is about: " + ", ".join(task.paths))
    return "\n\n".join(parts)


def _budget(
    budget: Budget, task: AgentTask, kind: NamedAgent | None, ledger: Ledger, share: Share
) -> Budget:
    """Tokens and USD come out of the parent's. Steps, calls and time are caps that bound each agent
    alone: no agent's is above its parent's."""
    steps = (budget.steps, kind.steps if kind else None, task.steps)
    working = budget.working_seconds - ledger.spend.working_seconds
    return budget.model_copy(
        update={
            "steps": min(s for s in steps if s is not None),
            "tokens": share.tokens,
            "usd": share.usd,
            "working_seconds": max(int(working), 1),
        }
    )


def _containment(parent: TaskContract, task: AgentTask) -> Containment | None:
    assert parent.containment is not None
    if not task.agents:
        return None
    if parent.containment.depth <= 1:
        raise AgentRefused(
            "agents: containment.depth is reached, so that this agent can't start any itself"
        )
    return Containment(
        agents=task.agents,
        concurrent=parent.containment.concurrent,
        depth=parent.containment.depth - 1,
    )


def share_of(task: AgentTask, ledger: Ledger, among: int) -> Share:
    """What the task asks for, or an equal part of half of what is left, so that the parent can go on
    meanwhile.

    Raises:
        AgentRefused: nothing is left to give.
    """
    tokens = task.tokens or ledger.tokens_left // (2 * among)
    usd, left = task.usd, ledger.usd_left
    if usd is None and left is not None:
        usd = part_of(left, 2 * among)
    if tokens < 1:
        raise AgentRefused(ledger.exhausted("tokens"))
    if usd is not None and usd <= 0:
        raise AgentRefused(ledger.exhausted("usd"))
    return Share(tokens=tokens, usd=usd)
