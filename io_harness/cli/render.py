"""Steps of a run as lines for a person."""

from collections.abc import Iterable
from typing import Literal, assert_never

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from rich.tree import Tree

from io_harness import trace
from io_harness.diff import lines_of
from io_harness.report.tree import Branch
from io_harness.visible import visible
from io_harness.workflows.approvals import PendingApproval
from io_harness.workflows.briefing import ToolDefinition
from io_harness.workflows.egress import EgressCount
from io_harness.workflows.mcp import McpTool, McpTools
from io_harness.workflows.messages import AssistantMessage, ToolCall
from io_harness.workflows.own_tools import plan_of
from io_harness.workflows.payloads import ApprovalRequest, NeedsApproval, ToolDone, WouldAct
from io_harness.workflows.result import (
    LandConflict,
    Landed,
    LandReport,
    NothingToLand,
    Outcome,
    RunResult,
    Spend,
    VerificationReport,
)
from io_harness.workflows.review_prompt import verdict_of

_DETAIL_LINES = 12
_INDENT = 12
_DIFF_STYLES: dict[str, str] = {
    "file": "bold",
    "head": "bold",
    "hunk": "cyan",
    "added": "green",
    "removed": "red",
}
_SHOWN_SECONDS = 0.05
_ARGUMENT_CHARS = 90
_HOSTS_SHOWN = 12
_GOOD = frozenset({Outcome.SUCCESS, Outcome.FINISHED})


def step(step: trace.Step, *, verbose: bool = False) -> RenderableType | None:
    """How the step looks; None if a person needn't see it."""
    match step:
        case trace.Began():
            return None if step.part > 1 else Text(visible(step.goal), style="bold")
        case trace.AdmittedStep() | trace.ListedStep():
            return _told(step, verbose=verbose)
        case trace.PreparedStep():
            held = step.prepared.isolation.backend
            text = f"{step.prepared.repo} at {step.prepared.base[:8]}, commands held by {held}"
            return _line("prepared", text, step)
        case trace.ModelStep():
            return _model(step)
        case trace.ToolStep():
            return _tool(step, verbose=verbose)
        case trace.VerifiedStep():
            return _verified(step)
        case trace.LandedStep():
            if isinstance(step.report, NeedsApproval):
                return _line("landing", "waits for approval", step, style="yellow")
            return _line("landed", landed_text(step.report), step)
        case trace.ReleasedStep():
            return _line("kept", step.ref, step, style="dim") if verbose else None
        case trace.OtherStep():
            return _line(step.activity, step.summary, step)
        case trace.FailedStep():
            code = f" ({step.code})" if step.code else ""
            text = ": ".join(filter(None, (step.summary or step.activity, step.message))) + code
            return _line(step.how.replace("_", " "), text, step, style="red")
        case trace.DecidedStep():
            decision = step.decision
            by = decision.by or step.identity
            words = f": {decision.reason}" if decision.reason else ""
            return _plain("decided", f"{decision.verdict} {decision.request} by {by}{words}")
        case trace.ChildStep():
            return _plain("sub-agent", f"{step.workflow_id} {step.what.replace('_', ' ')}")
        case trace.CancelAskedStep():
            return _plain("cancel", f"asked by {step.identity}", style="yellow")
        case trace.ContinuedStep():
            return _plain("", "(history goes on in a new part)", style="dim") if verbose else None
        case trace.EndedStep():
            return None  # shown as the result
        case _:
            assert_never(step)


def result(ended: trace.EndedStep) -> RenderableType:
    """The end of a run: diff, verification, cost, outcome."""
    found = ended.result
    if found is None:
        what = {"timed_out": "timed out"}.get(ended.status, ended.status)
        text = ended.message or "before it had a result"
        return _plain(what, f"{text} ({ended.code})" if ended.code else text, style="red bold")
    parts: list[RenderableType] = []
    if isinstance(found.landing, Landed) and found.landing.diff:
        parts += [Text(), diff(found.landing.diff)]
        if found.landing.diff_omitted_bytes:
            parts.append(Text(f"… {found.landing.diff_omitted_bytes:,} more bytes", style="dim"))
    parts.append(Text())
    if found.summary:
        parts.append(_plain("summary", found.summary))
    if found.answer is not None:
        parts.append(_plain("answer", str(found.answer)))
    if found.verification is not None:
        parts.append(_verdict(found.verification))
    if found.landing is not None:
        parts.append(_plain("landed", landed_text(found.landing)))
    parts.append(_plain("spent", spend_text(found.spend)))
    if found.egress:
        parts.append(_plain("network", egress_text(found.egress)))
    if found.ref is not None and found.outcome not in _GOOD:
        parts.append(_plain("work", f"kept on {found.ref} of the snapshot store"))
    style = "green bold" if found.outcome in _GOOD else "red bold"
    parts.append(_plain(found.outcome.value.replace("_", " "), _ended_text(found), style=style))
    return Group(*parts)


def _ended_text(found: RunResult) -> str:
    return f"{found.reason} ({found.code})" if found.code else found.reason


def egress_text(counts: tuple[EgressCount, ...]) -> str:
    """Whom the run reached, and who was refused to it."""
    rows = []
    for count in counts[:_HOSTS_SHOWN]:
        where = count.host if count.port is None else f"{count.host}:{count.port}"
        allowed = [f"{count.allowed} allowed"] if count.allowed else []
        denied = [f"{count.denied} denied"] if count.denied else []
        rows.append(f"{where} {', '.join(allowed + denied)}")
    if len(counts) > _HOSTS_SHOWN:
        rows.append(f"and {_count(len(counts) - _HOSTS_SHOWN, 'more host')}")
    return "; ".join(rows)


def spend_text(spend: Spend) -> str:
    usage = spend.usage
    cached = f", {usage.cached:,} of them cached" if usage.cached else ""
    unpriced = f" (and {spend.unpriced_calls} of unknown price)" if spend.unpriced_calls else ""
    return (
        f"{_count(spend.steps, 'model call')}, {_count(spend.tool_calls, 'tool call')}, "
        f"{usage.input + usage.cached + usage.cache_write:,} tokens read{cached}, "
        f"{usage.output:,} written, {spend.usd:.4f} USD{unpriced}, {spend.working_seconds:.0f} s"
    )


def tree(branch: Branch) -> Tree:
    """A run and its sub-agents, each in a line."""
    shown = Tree(_agent(branch, branch.run))
    _grow(shown, branch)
    return shown


def _grow(shown: Tree, branch: Branch) -> None:
    for agent in branch.agents:
        _grow(shown.add(_agent(agent, agent.run.removeprefix(f"{branch.run}/"))), agent)
    for run in branch.missing:
        shown.add(Text(f"{run}  no history left", style="dim"))


def _agent(branch: Branch, name: str) -> Text:
    spend = branch.spend
    style = {"success": "green", "finished": "green", "running": "cyan"}.get(branch.state, "red")
    cost = (
        f"{_count(spend.steps, 'step')} · {spend.usage.total:,} tokens · {spend.usd:.4f} USD · "
        f"{branch.seconds:.1f} s"
    )
    line = Text(visible(name), no_wrap=True)
    line.append(f"  {branch.state}", style=style).append(f"  {cost}  ", style="dim")
    return line.append(visible(_cut(branch.goal)))


def landed_text(report: LandReport) -> str:
    match report:
        case Landed():
            where = {"apply": "into", "branch": "on branch", "patch": "as"}[report.mode]
            return f"{_count(len(report.files), 'file')} {where} {report.where}"
        case LandConflict():
            return f"nothing: {report.reason}: {', '.join(report.paths)}"
        case NothingToLand():
            return "nothing: no file changed"
        case _:
            assert_never(report)


def approval(pending: PendingApproval, run: str | None = None) -> RenderableType:
    """A request as a person is asked: what, why, and exactly what would happen. `run` is named where
    requests of several runs are shown."""
    request = pending.request
    head = Text.assemble(
        (f"{visible(run)}  " if run else "", "bold"),
        ("approval needed  ", "yellow bold"),
        (f"{request.act} ", "bold"),
        visible(request.target),
    )
    by = f" · by the sub-agent {visible(pending.agent)}" if pending.agent else ""
    why = Text(
        visible(
            f"asked by rule {request.why.rule!r} of layer {request.why.layer!r} · {request.tool}"
        )
        + by,
        style="dim",
    )
    return Group(Text(), head, why, _indented(preview(request)))


def _indented(text: Text) -> Text:
    """Two columns to the right, with nothing added at the ends of lines: they may be copied."""
    return Text("\n").join(Text("  ").append_text(line) for line in text.split("\n"))


def preview(request: ApprovalRequest) -> Text:
    match request.preview_kind:
        case "diff":
            return diff(request.preview)
        case "command":
            return Text(f"$ {visible(request.preview)}", style="bold")
        case "text":
            return Text(visible(request.preview))
        case _:
            assert_never(request.preview_kind)


def diff(text: str) -> Text:
    """A unified diff in its usual colours."""
    shown = Text()
    for line in lines_of(visible(text).rstrip()):
        shown.append(line.whole + "\n", style=_DIFF_STYLES.get(line.kind, ""))
    shown.rstrip()
    return shown


# --- one step -------------------------------------------------------------------------------------


def _told(step: trace.AdmittedStep | trace.ListedStep, *, verbose: bool) -> RenderableType:
    """What the model is told besides the transcript; at length only where it is asked for."""
    if isinstance(step, trace.AdmittedStep):
        line = _line("admit", step.summary, step)
        told = step.briefing
        if told is None or not verbose:
            return line
        return Group(line, _Detail(f"{told.system}\n\nTools: {_names(told.tools)}"))
    line = _line("mcp tools", step.summary, step)
    if not verbose or not isinstance(step.listing, McpTools):
        return line
    return Group(line, _Detail(f"Tools: {_names(step.listing.tools)}"))


def _names(tools: Iterable[ToolDefinition | McpTool]) -> str:
    return ", ".join(tool.name for tool in tools) or "none"


def _model(step: trace.ModelStep) -> RenderableType:
    completion = step.completion
    usage = completion.usage
    words = " ".join(completion.message.text.split())
    what, details = words or "(no words)", list[str]()
    match step.purpose:
        case "fold":
            what = "folds the transcript"
        case "review":
            what, details = _reviewed(completion.message)
    cost = "" if completion.cost_usd is None else f" · {completion.cost_usd:.4f} USD"
    note = f"{usage.total:,} tokens{cost}"
    line = _line(f"step {step.step}", what, step, note=note)
    plans = (plan_of(call) for call in completion.message.calls)
    details += [plan.markdown() for plan in plans if plan]
    return Group(line, *map(_Detail, details)) if details else line


def _reviewed(reply: AssistantMessage) -> tuple[str, list[str]]:
    """A reviewer's verdict and what it found."""
    given = verdict_of(reply)
    if isinstance(given, str):
        return f"review: {given}", []
    return f"review: {'passed' if given.passes else 'failed'}", [given.findings]


def _tool(step: trace.ToolStep, *, verbose: bool) -> RenderableType:
    what = call_text(step.call) if step.call else step.summary
    match step.outcome:
        case NeedsApproval(requests=requests):
            asked = ", ".join(dict.fromkeys(f"{r.act} {r.target}" for r in requests))
            return _line("", f"{what}  → asks: {asked}", step, style="yellow")
        case WouldAct():
            return _line("", f"{what}  → would run without asking", step, style="dim")
        case ToolDone(refused=refused) if refused is not None:
            by = f"rule {refused.rule!r} of layer {refused.layer!r}"
            return _line("", f"{what}  → refused by {by}", step, style="red")
        case ToolDone() as done:
            line = _line("", f"{what}{_done(step.call, done)}", step, style=_error_style(done))
            shown = done.observation.text.strip()
            return Group(line, _Detail(shown)) if verbose and shown else line
        case _:
            assert_never(step.outcome)


def _done(call: ToolCall | None, done: ToolDone) -> str:
    """What came of a call, in a few words: the lines it changed, else the gist of what it showed."""
    about = call.arguments.get("path") if call else None
    if done.changed:
        return "".join(
            f"  {'' if c.path == about else c.path + ' '}+{c.added} −{c.removed}"
            for c in done.changed
        )
    lines = done.observation.text.strip().splitlines()
    if not lines:
        return ""
    # The first line says how it ended; of a command's output the last line says most.
    gist = [lines[0].strip("[]"), lines[-1]] if call and call.name == "run_command" else lines[:1]
    return f"  → {_cut(' · '.join(dict.fromkeys(gist)))}"


def _error_style(done: ToolDone) -> str:
    return "red" if done.observation.is_error else ""


def call_text(call: ToolCall) -> str:
    """A call in one line: its name and what it is about."""
    about = next((v for v in call.arguments.values() if isinstance(v, str) and v), "")
    return f"{call.name} {_cut(about)}".strip()


def _verified(step: trace.VerifiedStep) -> RenderableType:
    line = _verdict(step.report, step)
    if step.report.verdict == "passed":
        return line
    details = "\n".join(c.detail for c in step.report.checks if c.verdict != "passed").strip()
    return Group(line, _Detail(details, _DETAIL_LINES)) if details else line


def _verdict(report: VerificationReport, step: trace.VerifiedStep | None = None) -> RenderableType:
    style = {"passed": "green", "failed": "red", "errored": "red"}[report.verdict]
    checks = "; ".join(c.summary or c.kind for c in report.checks)
    text = f"{report.verdict}: {checks}"
    if step is None:
        return _plain("verified", text, style=style)
    return _line("verify", text, step, style=style)


def _line(
    label: str,
    text: str,
    step: trace.Call,
    *,
    style: str = "",
    note: str = "",
) -> RenderableType:
    notes = [note] if note else []
    if step.attempts > 1:
        notes.append(f"{step.attempts} attempts; before: {_cut(step.last_failure or 'unknown')}")
    if step.seconds >= _SHOWN_SECONDS:
        notes.append(f"{step.seconds:.1f} s")
    return _Row(label, text, " · ".join(note.replace(" ", "\u00a0") for note in notes), style)


def _plain(label: str, text: str, *, style: str = "") -> RenderableType:
    return _Row(label, text, "", style)


class _Detail:
    """Output under a row, its last lines if there are too many."""

    def __init__(self, text: str, limit: int | None = None) -> None:
        self.lines = visible(text).splitlines()
        if limit is not None and len(self.lines) > limit:
            dropped = len(self.lines) - limit
            self.lines = [f"… {_count(dropped, 'line')} before", *self.lines[-limit:]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines:
            yield Text(" " * _INDENT + line, style="dim", no_wrap=True, overflow=_overflow(options))


def _overflow(options: ConsoleOptions) -> Literal["ellipsis", "ignore"]:
    return "ellipsis" if options.is_terminal else "ignore"


class _Row:
    """A label, a text that wraps under itself, and a note at its end."""

    def __init__(self, label: str, text: str, note: str, style: str) -> None:
        self.label, self.text = label, visible(text)
        self.note, self.style = visible(note), style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        body = Text(self.text, style=self.style)
        if self.note:
            body.append(f"  {self.note}", style="dim")
        label = Text(self.label.ljust(_INDENT - 2) + "  ")
        label.stylize(self.style or "cyan")
        if not options.is_terminal:
            yield label + body
            return
        wrapped = body.wrap(console, max(options.max_width - len(label), 20))
        for number, part in enumerate(wrapped):
            lead = label if number == 0 else Text(" " * len(label))
            yield lead + part


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ARGUMENT_CHARS else line[: _ARGUMENT_CHARS - 1] + "…"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
