"""What goes into the activities and what comes out of them.

Invariant: a message is in history once. Results carry messages in; inputs never carry the transcript.
"""

import hashlib
import json
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .contract import Price
from .egress import EgressCount
from .ledger import Share
from .messages import AssistantMessage, Observation, ToolCall
from .model import Record, unwritten
from .result import (
    FileChange,
    IsolationReport,
    LandConflict,
    Landed,
    NothingToLand,
    Outcome,
    Usage,
)
from .rules import Act as Act
from .rules import Reason as Reason
from .rules import Rule

INLINE_ARGUMENTS_BYTES = 8 * 1024
"""Larger arguments of a tool call travel by reference to the message that holds them."""
INLINE_OUTPUT_BYTES = 32 * 1024
"""Ceiling of any text that an activity returns inline."""


class RunScope(Record):
    """Which run an activity works for. The contract is not in it: the activity reads it by the query
    `contract` and caches it by digest."""

    key: str
    """Names the run's refs, working copy and spilled outputs: safe as a file name, one per run."""
    contract_digest: str
    sub_agent: bool = unwritten(False)
    """Whether the run is one: it has a parent that it can write to."""
    mcp_digest: str = unwritten("")
    """Of the recorded list of MCP tools, which the activity reads by the query `mcp_tools`."""


Effect = Literal["read", "write", "unrepeatable"]
"""Decides retries: reads run again, writes run again from their base snapshot, unrepeatable calls
are never repeated silently."""


class Origin(Record):
    """From what a sub-agent's files are made."""

    parent: str
    """Key of the run that started it."""
    base: str
    """The parent's snapshot at that moment."""
    criterion: Literal["contract", "agent"]
    """Who wrote the criterion. An agent's may run only what the policy allows without asking."""


# --- admit and prepare ----------------------------------------------------------------------------


class AdmitInput(Record):
    run: RunScope


class Admitted(Record):
    """What a worker that makes model calls found before the run costs anything."""

    prices: tuple[Price | None, ...]
    """Price of each model of the chain; None where it is not known."""
    cli_options: str = ""
    """What the `temporal` command needs to reach this server, where its defaults don't."""
    search_attributes: tuple[str, ...]
    """Those of ours that are registered in the namespace."""
    effects: dict[str, Effect] = {}
    """Effect class of each tool that is offered, by name."""
    prompt_tokens: int
    """Upper bound of the tokens of system prompt and tool descriptions together."""
    briefing: str = ""
    """System prompt and tools, packed. In history once per run, for who reads its trace: a
    continuation is given none."""


class PrepareInput(Record):
    run: RunScope
    origin: Origin | None = None
    """Of a sub-agent: its files are its parent's, not the source's."""


class Prepared(Record):
    """What a worker that runs commands found and made."""

    base: str
    """Commit of the first snapshot."""
    repo: str
    """Short name of the source, for lists of runs."""
    instructions: str | None = None
    """What the repository's authors tell agents (AGENTS.md), delimited."""
    isolation: IsolationReport
    egress: tuple[EgressCount, ...] = ()
    """Connections that the set-up wanted."""


# --- complete -------------------------------------------------------------------------------------

FinishReason = Literal[
    "stop", "tool_use", "length", "refusal", "content_filter", "context_overflow", "paused"
]


class TranscriptMark(Record):
    """A prefix of the transcript: its first `upto` messages, whose digest chain ends in `digest`."""

    upto: int
    digest: str


Purpose = Literal["turn", "fold", "review"]


class CompleteInput(Record):
    """Asks for the message that follows `transcript`, which the activity reads by query."""

    run: RunScope
    step: int
    purpose: Purpose = unwritten("turn")
    """fold: summarise the transcript instead of going on with it; no tool is offered. review: judge
    `change`; the transcript is not read."""
    transcript: TranscriptMark
    model: int
    """Index in the contract's chain of models, after which come the models of its reviews."""
    max_output_tokens: int
    spare: Share | None = None
    """What failed attempts may use before the next one could pass the budget. None: as they like, in
    a call of an earlier release."""
    reviews: int = unwritten(0)
    """How many of the run's model calls before this one were reviews."""
    change: str = unwritten("")
    """For a review: the whole diff."""


class Completion(Record):
    message: AssistantMessage
    finish: FinishReason
    usage: Usage
    """Of this reply alone: what the context holds can be read from it."""
    retried: Usage = unwritten(Usage())
    """What failed attempts at this call are known to have used."""
    cost_usd: Decimal | None
    """Of all attempts; None: the price is not known."""
    egress: tuple[EgressCount, ...] = unwritten(())
    """Connections that were wanted since the last result that told."""


class Used(Record):
    """What all attempts at a model call are known to have used. Detail of each heartbeat and error."""

    usage: Usage
    cost_usd: Decimal | None
    """None: the price is not known."""


class ModelFailure(Used):
    """Detail of the error with which `complete` fails for good."""

    fallback_may_help: bool
    """Whether another model of the chain may succeed."""


# --- use_tool -------------------------------------------------------------------------------------


class InlineCall(Record):
    kind: Literal["inline"] = "inline"
    call: ToolCall


class CallReference(Record):
    """A call whose arguments are too large to be twice in history."""

    kind: Literal["reference"] = "reference"
    transcript: TranscriptMark
    """Prefix whose last message is the assistant's that made the call."""
    position: int
    """Index among that message's calls."""


class ApprovalRequest(Record):
    """What a human is asked, as an activity found it at the point of effect."""

    act: Act | Literal["land", "question", "retry"]
    target: str
    """Resolved path, simple command, or canonical host:port."""
    tool: str
    why: Reason
    preview: str
    """Exactly what is shown: the diff, the argv, the host."""
    preview_kind: Literal["diff", "command", "text"]
    digest: str
    """sha256 of act, target, arguments and preview. A grant holds for this and nothing else."""
    suggestion: Rule | None = None
    """The narrowest rule that, remembered, would have let this pass; None where none is offered."""


class Grant(Record):
    """A human's yes, bound to what was shown or to the arguments that the human wrote instead."""

    of: Literal["request", "arguments"] = "request"
    digest: str
    """The request's digest, or `arguments_digest` of the rewritten call."""
    answer: str = ""
    """To a question: what the human said."""


def arguments_digest(arguments: dict[str, JsonValue]) -> str:
    """sha256 of a call's arguments as JSON with sorted keys."""
    encoded = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode()).hexdigest()


class UseToolInput(Record):
    run: RunScope
    step: int
    base: str
    """Snapshot from which the call starts, on every attempt."""
    call: Annotated[InlineCall | CallReference, Field(discriminator="kind")]
    grants: tuple[Grant, ...] = unwritten(())
    remembered: tuple[Rule, ...] = unwritten(())
    """Rules that a human allowed for the rest of the run; a deny still beats them."""
    denied: tuple[str, ...] = unwritten(())
    """Digests of requests of act net that a human denied for this call: it goes on without them."""
    preview_only: bool = unwritten(False)
    """Only find out whether the call would ask; it then has no effect whatever the policy says."""


class ToolDone(Record):
    kind: Literal["done"] = "done"
    head: str
    """Snapshot after the call; equal to the base if nothing changed."""
    observation: Observation
    changed: tuple[FileChange, ...] = unwritten(())
    refused: Reason | None = unwritten(None)
    """Set if the policy refused the call; it then had no effect."""
    tools_changed: bool = unwritten(False)
    """An MCP server's list of tools is no longer the recorded one."""
    egress: tuple[EgressCount, ...] = unwritten(())
    """Connections that were wanted since the last result that told."""


class NeedsApproval(Record):
    """The call had no effect on the workspace; a human is asked first."""

    kind: Literal["needs_approval"] = "needs_approval"
    requests: Annotated[tuple[ApprovalRequest, ...], Field(min_length=1)]
    egress: tuple[EgressCount, ...] = ()
    """As in `ToolDone`: a command that asks about a host has run up to there."""


class WouldAct(Record):
    """Answer to `preview_only`: the call would run, or be refused, without asking."""

    kind: Literal["would_act"] = "would_act"


ToolOutcome = Annotated[ToolDone | NeedsApproval | WouldAct, Field(discriminator="kind")]


# --- merge ----------------------------------------------------------------------------------------


class MergeInput(Record):
    """Take a sub-agent's work into the run's own."""

    run: RunScope
    head: str
    """The run's snapshot."""
    child_base: str
    child_head: str
    title: str


class Merged(Record):
    kind: Literal["merged"] = "merged"
    head: str
    changed: tuple[FileChange, ...]
    """What the sub-agent changed; the first ones."""
    changed_omitted: int = 0


class MergeConflict(Record):
    """Both changed the same places. Nothing was merged."""

    kind: Literal["conflict"] = "conflict"
    paths: tuple[str, ...]
    sides: str
    """What each side did to them, as diffs, capped."""


MergeOutcome = Annotated[Merged | MergeConflict, Field(discriminator="kind")]


# --- verify, land, release ------------------------------------------------------------------------


class VerifyInput(Record):
    run: RunScope
    base: str
    head: str
    answer: JsonValue = None
    remembered: tuple[Rule, ...] = ()
    """As in `UseToolInput`."""


class LandInput(Record):
    run: RunScope
    base: str
    head: str
    title: str
    """First line of a commit message."""
    verification: str = ""
    """One line on how the change was verified, shown to whoever approves it."""
    grants: tuple[Grant, ...] = ()


LandOutcome = Annotated[
    Landed | LandConflict | NothingToLand | NeedsApproval, Field(discriminator="kind")
]


class ReleaseInput(Record):
    """End of a run: nothing of it keeps running, the copy goes, the work stays on a ref."""

    run: RunScope
    base: str
    head: str
    outcome: Outcome
    seconds: float = 0
    """From the run's start to its end."""
    waited_seconds: float = 0
    """How much of that it waited for humans."""
    usd: Decimal = Decimal(0)
    """What it spent, as far as prices are known."""


class Released(Record):
    ref: str
    """Ref in the snapshot store that keeps the work."""
    egress: tuple[EgressCount, ...] = ()
    """Connections that were wanted since the last result that told."""
