"""Asks for the tools of the contract's MCP servers: before the first turn, and at the edge of a turn
after which the list may be another one."""

from typing import assert_never

from temporalio import workflow
from temporalio.exceptions import ActivityError

from . import calls
from .ask import ask
from .ended import RunEnded, failure_code, failure_text, reraise_cancel
from .mcp import ListMcpToolsInput, McpListing, McpState, McpTools, McpUnchanged
from .payloads import Grant, NeedsApproval
from .result import Outcome
from .state import RunState

_ASK_ROUNDS = 3
_MARGIN_SECONDS = 30


async def refresh_mcp_tools(state: RunState) -> None:
    """Bring the recorded list up to date where it is due.

    Raises:
        RunEnded: a server can't be started, or may not be, before the first turn. Later a server
            that fails costs only the calls to it: the list stays as it was.
    """
    if not state.contract.mcp_servers or not state.mcp.due(workflow.time()):
        return
    first = state.mcp.tools is None
    before, state.activity = state.activity, "asking MCP servers for their tools"
    try:
        for _ in range(_ASK_ROUNDS):
            outcome = await _list(state)
            match outcome:
                case McpTools():
                    _take(state, outcome)
                    return
                case McpUnchanged():
                    _note(state, listed_at=workflow.time(), stale=False)
                    return
                case NeedsApproval():
                    await _approve(state, outcome)
                case _:
                    assert_never(outcome)
        raise RunEnded(
            Outcome.ESCALATED,
            "what the start of the MCP servers would do changed with every approval",
            code="McpServerFailed",
        )
    except ActivityError as error:
        reraise_cancel(error)
        state.clock()
        if first:
            raise RunEnded(
                Outcome.ESCALATED, failure_text(error), code=failure_code(error)
            ) from error
        workflow.logger.warning("MCP tools not listed anew", extra={"error": failure_text(error)})
        _note(state, listed_at=workflow.time(), stale=False)
    finally:
        state.activity = before


async def _list(state: RunState) -> McpListing:
    servers = state.contract.mcp_servers
    attempt = max(s.connect_seconds * 2 + s.list_seconds for s in servers) + _MARGIN_SECONDS
    arg = ListMcpToolsInput(
        run=state.scope,
        base=state.head,
        grants=state.mcp.grants,
        remembered=tuple(state.remembered),
    )
    options = calls.Options(
        attempt_seconds=attempt,
        total_seconds=min(state.clock(), attempt * 3),
        task_queue=state.tools_queue,
    )
    names = ", ".join(s.id for s in servers)
    return await calls.list_mcp_tools(arg, options, f"tools of {names}")


async def _approve(state: RunState, needed: NeedsApproval) -> None:
    """Ask a human about the start of servers.

    Raises:
        RunEnded: the human says no, or nobody answers.
    """
    decisions = await ask(state, state.step, tuple(enumerate(needed.requests)))
    grants = list(state.mcp.grants)
    for request, decision in zip(needed.requests, decisions, strict=True):
        if decision is None or decision.verdict != "approve" or decision.edit is not None:
            raise RunEnded(
                Outcome.DENIED,
                f"the start of an MCP server was not approved: {request.target}",
                code="McpServerRefused",
            )
        grants.append(Grant(digest=request.digest))
        if decision.remember and request.suggestion is not None:
            state.remembered.append(request.suggestion)
    _note(state, grants=tuple(grants))


def _take(state: RunState, tools: McpTools) -> None:
    grown = tools.prompt_tokens - (state.mcp.tools.prompt_tokens if state.mcp.tools else 0)
    if state.counted_tokens:
        # The provider counted the last request with the old list.
        state.counted_tokens = max(state.counted_tokens + grown, 0)
    state.mcp = McpState(
        tools=tools, grants=state.mcp.grants, listed_at=workflow.time(), stale=False
    )
    state.scope = state.scope.model_copy(update={"mcp_digest": tools.digest})


def _note(state: RunState, **update: object) -> None:
    state.mcp = state.mcp.model_copy(update=update)
