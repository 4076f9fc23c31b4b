"""What a run returns, and the reports inside it."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .egress import EgressCount
from .messages import ModelRef
from .model import Record, unwritten
from .rules import Rule


class Outcome(StrEnum):
    SUCCESS = "success"
    """Verified and landed."""
    FINISHED = "finished"
    """The model finished and the contract has no criterion."""
    STEP_CAP_REACHED = "step_cap_reached"
    """As many model calls, or tool calls, as the budget allows."""
    TIME_BUDGET_EXCEEDED = "time_budget_exceeded"
    """Of the working time or the time from start to end."""
    TOKEN_BUDGET_EXCEEDED = "token_budget_exceeded"
    """The next model call could pass the budget; it was not made."""
    COST_BUDGET_EXCEEDED = "cost_budget_exceeded"
    """The next model call could pass the budget in US dollars; it was not made."""
    BUDGET_CEILING_REACHED = "budget_ceiling_reached"
    """The tree's ceiling, not this run's own."""
    DENIED = "denied"
    """A human refused what the run can't go on without: the landing, an MCP server, or another try
    of a call that was lost."""
    APPROVAL_EXPIRED = "approval_expired"
    """Nobody decided in time, and the contract says that this ends the run."""
    STALLED = "stalled"
    """The agent repeated itself and changed nothing, also after it was told so."""
    ESCALATED = "escalated"
    """A failure that retries did not cure; `code` says which."""
    CANCELLED = "cancelled"
    """By request. Its commands are dead and its work so far is kept."""


class Usage(Record):
    """Tokens of one or more model calls, in four buckets that don't overlap."""

    input: int = 0
    """Read at full price."""
    cached: int = 0
    """Read from the provider's prompt cache."""
    cache_write: int = 0
    """Read and written to the provider's prompt cache."""
    output: int = 0
    """Written, reasoning included."""
    reasoning: int = 0
    """The part of `output` that is reasoning."""

    @property
    def total(self) -> int:
        return self.input + self.cached + self.cache_write + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


class Spend(Record):
    """What a run has used of its budget."""

    steps: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    usd: Decimal = Decimal(0)
    """Sum over the calls whose price is known."""
    unpriced_calls: int = 0
    """Model calls whose price is not known; told apart from calls that cost nothing."""
    working_seconds: float = 0

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            steps=self.steps + other.steps,
            tool_calls=self.tool_calls + other.tool_calls,
            usage=self.usage + other.usage,
            usd=self.usd + other.usd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
            working_seconds=self.working_seconds + other.working_seconds,
        )


class CheckReport(Record):
    """One criterion's verdict."""

    kind: str
    verdict: Literal["passed", "failed", "errored"]
    """errored: the criterion could not run, which says nothing about the work."""
    summary: str
    """One line."""
    detail: str = ""
    """Output of the command or the like, capped."""
    exit_code: int | None = None
    """None where there is none: not a command, or killed by a signal or a cap."""
    seconds: float = 0


class VerificationReport(Record):
    verdict: Literal["passed", "failed", "errored"]
    checks: tuple[CheckReport, ...]
    snapshot: str
    """The commit that was verified."""
    egress: tuple[EgressCount, ...] = ()
    """Connections that were wanted meanwhile."""
    change: str = unwritten("")
    """The whole diff, where a model is to review it next. A run's result has none."""


class FileChange(Record):
    path: str
    status: Literal["added", "modified", "deleted"]
    added: int
    """Lines; 0 for binary files."""
    removed: int


class Landed(Record):
    kind: Literal["landed"] = "landed"
    mode: Literal["apply", "branch", "patch"]
    where: str
    """The directory, the branch, or the patch file."""
    files: tuple[FileChange, ...]
    files_omitted: int = 0
    """How many more files changed than `files` names."""
    diff: str
    """Unified diff, capped."""
    diff_omitted_bytes: int = 0
    mixed: bool = False
    """What is there now was not verified as a whole: the change went in beside other ones. The source
    moved meanwhile, or a branch lacks what no commit of the source held."""


class LandConflict(Record):
    """The source moved meanwhile and the change doesn't merge. Nothing was landed."""

    kind: Literal["conflict"] = "conflict"
    paths: tuple[str, ...]
    reason: str


class NothingToLand(Record):
    kind: Literal["nothing"] = "nothing"


LandReport = Annotated[Landed | LandConflict | NothingToLand, Field(discriminator="kind")]


class IsolationReport(Record):
    """How well commands were held, as a probe found."""

    backend: str
    levels: dict[str, Literal["enforced", "partial", "advisory", "none"]]


class RunResult(Record):
    """How a run ended. Returned by the workflow."""

    outcome: Outcome
    reason: str
    """One sentence for a person."""
    code: str | None = None
    """Error code of the failure behind an outcome `escalated`."""
    summary: str = ""
    """What the model said it did."""
    answer: JsonValue = None
    """The structured answer, where the contract asks for one."""
    base: str | None = None
    """Snapshot from which the run began; None if it never got that far."""
    head: str | None = None
    ref: str | None = None
    """Ref in the snapshot store that keeps the work."""
    verification: VerificationReport | None = None
    landing: LandReport | None = None
    spend: Spend = Spend()
    """Of this run alone."""
    descendants: Spend = Spend()
    """Of all its sub-agents together, and theirs."""
    agents: int = 0
    """Sub-agents that were started, those of sub-agents included."""
    unread: int = 0
    """Messages of other agents that came too late to be read."""
    models: tuple[ModelRef, ...] = ()
    """Which models served."""
    isolation: IsolationReport | None = None
    egress: tuple[EgressCount, ...] = ()
    """How many connections were allowed and denied, per host and port."""
    remembered: tuple[Rule, ...] = ()
    """Rules that a human allowed during the run, to be kept in a policy file if they are meant to
    stay."""
    labels: dict[str, str] = {}
