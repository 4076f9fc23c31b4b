"""What people see of a run in the Temporal UI: its details page and its search attributes."""

from collections import Counter
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from . import attributes
from .approvals import PendingApproval
from .child import Child
from .own_tools import Plan
from .result import VerificationReport
from .state import RunState

_PREVIEW_CHARS = 6_000
_TARGET_CHARS = 300
_SHOWN_AGENTS = 30


def publish(state: RunState) -> None:
    """Bring the details page up to date, and the search attributes if the run does something else now:
    writing them is an event of history."""
    workflow.set_current_details(details(state))
    if state.published == _activity(state):
        return
    updates = [pair.key.value_set(pair.value) for pair in _search_attributes(state)]
    if updates:
        workflow.upsert_search_attributes(updates)


def attributes_of_continuation(state: RunState) -> TypedSearchAttributes:
    """The run's search attributes up to date, and others' as they are. They go along with
    continue-as-new and cost no event."""
    return workflow.info().typed_search_attributes.updated(*_search_attributes(state))


def _search_attributes(state: RunState) -> list[SearchAttributePair[Any]]:
    """What is written now: of ours, those that are registered."""
    state.published = _activity(state)
    model = state.contract.models[state.model]
    key = SearchAttributeKey
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(key.for_keyword(attributes.STATE), state.published),
        SearchAttributePair(key.for_keyword(attributes.REPO), state.prepared.repo),
        SearchAttributePair(key.for_keyword(attributes.MODEL), f"{model.provider}/{model.name}"),
        SearchAttributePair(key.for_int(attributes.STEP), state.step),
        SearchAttributePair(key.for_float(attributes.SPEND_USD), float(state.ledger.spend.usd)),
    ]
    return [pair for pair in pairs if pair.key.name in state.admitted.search_attributes]


def _activity(state: RunState) -> str:
    """A tree waits for a human as soon as one of its agents does."""
    return "waiting" if state.tree.asked else state.activity


def details(state: RunState) -> str:
    """The details page, in Markdown."""
    spend, budget = state.ledger.spend, state.ledger.budget
    usd = f"{spend.usd:.4f}" + (f" of {budget.usd}" if budget.usd is not None else "")
    if spend.unpriced_calls:
        usd += f" (and {spend.unpriced_calls} of unknown price)"
    parts = [
        f"**{_activity(state)}** · step {spend.steps} of {budget.steps}",
        # Another agent wrote the goal of a sub-agent.
        state.contract.goal if state.lineage is None else _in_fence(state.contract.goal),
        # A list: the UI draws a table without any space between its columns.
        f"- tokens: {spend.usage.total:,} of {budget.tokens:,}\n- USD: {usd}\n"
        f"- tool calls: {spend.tool_calls} of {budget.tool_calls}\n"
        f"- working time: {spend.working_seconds:.0f} of {budget.working_seconds} s",
    ]
    if state.children.known:
        parts.append(_agents(tuple(state.children.known.values())))
    if state.plan.items:
        parts.append(_plan(state.plan))
    if state.verification is not None:
        parts.append(_verification(state.verification))
    workflow_id = workflow.info().workflow_id
    options = state.admitted.cli_options
    parts += [
        _pending(workflow_id, options, pending)
        for pending in (*state.book.pending, *state.tree.pending)
    ]
    return "\n\n".join(parts)


def _plan(plan: Plan) -> str:
    """The agent's own words: they may not write on the page on which its acts are approved."""
    return "\n".join(["### Plan", *(f"- {item.mark} {in_code(item.text)}" for item in plan.items)])


def _verification(report: VerificationReport) -> str:
    lines = (f"- {c.kind}: **{c.verdict}**, {in_code(c.summary)}" for c in report.checks)
    return "\n".join(["### Last verification", *lines])


def _agents(children: tuple[Child, ...]) -> str:
    """Those that have not ended first."""
    states = Counter(child.state for child in children)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    shown = sorted(children, key=lambda child: child.ended)[:_SHOWN_AGENTS]
    lines = [f"### Sub-agents: {counts}", *map(_agent, shown)]
    if len(shown) < len(children):
        lines.append(f"- and {len(children) - len(shown)} more")
    return "\n".join(lines)


def _agent(child: Child) -> str:
    how = child.report.outcome.value if child.report else child.failure[:200] or child.state
    return f"- `{child.id}`: **{how}**, {in_code(' '.join(child.goal.split())[:120])}"


def _pending(workflow_id: str, cli_options: str, pending: PendingApproval) -> str:
    request = pending.request
    preview = request.preview[:_PREVIEW_CHARS]
    if len(request.preview) > _PREVIEW_CHARS:
        preview += f"\n… {len(request.preview) - _PREVIEW_CHARS} more characters"
    language = {"diff": "diff", "command": "sh", "text": ""}[request.preview_kind]
    verdicts = "retry" if request.act == "retry" else "approve"
    decision = f'{{"request":"{pending.id}","verdict":"{verdicts}","by":"your name"}}'
    return (
        f"### Waiting for approval: {request.act} {in_code(request.target)}\n\n"
        + (f"by the sub-agent {in_code(pending.agent)}\n\n" if pending.agent else "")
        + f"asked by rule {in_code(request.why.rule)} of layer {in_code(request.why.layer)}\n\n"
        f"{_in_fence(preview, language)}\n\n"
        "To decide (`deny` instead of `approve` refuses; a `reason` is told to the agent):\n\n"
        "```sh\n"
        f"temporal workflow signal{cli_options} --workflow-id '{workflow_id}' --name decide "
        f"--input '{decision}'\n"
        "```"
    )


def _in_fence(text: str, language: str = "") -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def in_code(text: str) -> str:
    """Markdown that shows the text on one line, whatever markup it holds: a tool's name is its server's
    to choose, and may not write on the page on which it is approved."""
    escaped = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    line = escaped if len(escaped) <= _TARGET_CHARS else f"{escaped[:_TARGET_CHARS]}…"
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
