"""The task contract: everything a person decides before a run, validated on construction."""

from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from .mcp_contract import McpServer, check_ids
from .model import Strict
from .policy import PolicySpec


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL character, which no file name or command can")
    return value


NonEmpty = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_without_nul)
]
LONGEST_SECONDS = 10 * 365 * 86_400
"""Ten years. Far longer times are more than a timer of the server, or Python's timedelta, can take."""
Argv = Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
Command = NonEmpty | Argv
"""A shell command line (string), or an argument vector (list) that no shell reads."""


def _relative(value: str) -> str:
    path = PurePosixPath(value)
    if not value or path.is_absolute() or ".." in path.parts or "\0" in value:
        raise ValueError("must be a path inside the workspace: relative, without '..'")
    return str(path)


def _env_reference(value: str) -> str:
    scheme, _, name = value.partition(":")
    if scheme != "env" or not name.replace("_", "").isalnum() or name[0].isdigit():
        raise ValueError(
            "must name a variable of the worker's environment, like env:ANTHROPIC_API_KEY; "
            "a secret itself never belongs in a contract"
        )
    return value


RelativePath = Annotated[str, AfterValidator(_relative)]
CredentialRef = Annotated[str, AfterValidator(_env_reference)]


# --- workspace ------------------------------------------------------------------------------------


class _Source(Strict):
    setup: Command | None = None
    """Prepares the run's copy (and each fresh checkout that is verified), in the sandbox."""
    setup_seconds: int = Field(default=600, ge=1, le=7200)
    ignored: Literal["bring", "leave"] = "bring"
    """Whether files that git ignores (an environment, installed modules) come along."""
    exclude: tuple[RelativePath, ...] = ()
    """Folders or files that are not brought along."""
    ignored_limit_mb: int = Field(default=1024, ge=0)
    """Ignored files above this many MiB in total are an error that names the largest."""


class DirectorySource(_Source):
    """A directory of the worker's host; a git repository or not."""

    kind: Literal["directory"] = "directory"
    path: NonEmpty


class GitSource(_Source):
    """A git repository by URL, at a ref."""

    kind: Literal["git"] = "git"
    url: NonEmpty
    ref: NonEmpty = "HEAD"


Source = Annotated[DirectorySource | GitSource, Field(discriminator="kind")]


# --- verification ---------------------------------------------------------------------------------


class CommandCheck(Strict):
    """Passes when the command exits as expected in a fresh checkout of the result."""

    kind: Literal["command"] = "command"
    run: Command
    expect_exit: int = Field(default=0, ge=0, le=255)
    seconds: int = Field(default=600, ge=1, le=86_400)
    protect: tuple[RelativePath, ...] = ()
    """Paths restored from the base before the command runs, whatever the agent did to them."""
    allow_zero_tests: bool = False
    """By default a run in which a known test runner says that it ran no test is no pass."""


class TestsCheck(Strict):
    """Files of the contract's own laid over the checkout, then a command. The agent can neither read
    nor write them."""

    kind: Literal["tests"] = "tests"
    files: Annotated[dict[RelativePath, str], Field(min_length=1)]
    """Path inside the checkout to text content."""
    run: Command
    expect_exit: int = Field(default=0, ge=0, le=255)
    seconds: int = Field(default=600, ge=1, le=86_400)
    protect: tuple[RelativePath, ...] = ()
    allow_zero_tests: bool = False


class FileContains(Strict):
    kind: Literal["file_contains"] = "file_contains"
    path: RelativePath
    text: NonEmpty


class FileEquals(Strict):
    kind: Literal["file_equals"] = "file_equals"
    path: RelativePath
    text: str


class JsonSchemaCheck(Strict):
    """Passes when the final answer is valid under the schema (draft 2020-12 unless `$schema` says
    otherwise)."""

    kind: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, JsonValue]


class AllOf(Strict):
    kind: Literal["all_of"] = "all_of"
    checks: Annotated[tuple["Check", ...], Field(min_length=1)]


class AnyOf(Strict):
    kind: Literal["any_of"] = "any_of"
    checks: Annotated[tuple["Check", ...], Field(min_length=1)]


class ReviewCheck(Strict):
    """Passes when another model finds that the change keeps to the rubric. It is shown goal,
    constraints, rubric and diff, and no word of the agent's. It is asked when all else has passed, so
    it stands alone or directly in an `all_of` that is the whole criterion."""

    kind: Literal["review"] = "review"
    rubric: Annotated[NonEmpty, Field(max_length=20_000)]
    model: "Model"
    """Never one that does the work."""


class NoCheck(Strict):
    """No criterion: the run ends as `finished`, not as `success`."""

    kind: Literal["none"] = "none"


_AnyCheck = (
    CommandCheck
    | TestsCheck
    | FileContains
    | FileEquals
    | JsonSchemaCheck
    | ReviewCheck
    | AllOf
    | AnyOf
)
Check = Annotated[_AnyCheck, Field(discriminator="kind")]
Verification = Annotated[_AnyCheck | NoCheck, Field(discriminator="kind")]


# --- budget, model --------------------------------------------------------------------------------


class Budget(Strict):
    """What a run may spend. Each is checked before the spend."""

    steps: int = Field(default=50, ge=1, le=10_000)
    """Model calls."""
    tool_calls: int = Field(default=500, ge=0)
    tokens: int = Field(default=2_000_000, ge=1)
    """Input and output tokens of all model calls together, cached ones included."""
    usd: Decimal | None = Field(default=None, gt=0, max_digits=12, decimal_places=6)
    """US dollars. Needs a known price for every model of the chain."""
    unpriced: Literal["refuse", "allow"] = "refuse"
    """What a budget in USD means for a model whose price is not known: refuse the run before its
    first call, or allow it and count its calls as unpriced."""
    working_seconds: int = Field(default=3600, ge=1, le=LONGEST_SECONDS)
    """Time in which the run works; time spent waiting for a human doesn't count."""
    wall_seconds: int | None = Field(default=None, ge=1, le=LONGEST_SECONDS)
    """Time from start to end, waiting included; None is no limit."""


class Price(Strict):
    """US dollars per million tokens."""

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cached_input: Decimal | None = Field(default=None, ge=0)
    """None: as `input`."""
    cache_write: Decimal | None = Field(default=None, ge=0)
    """None: as `input`."""


class ModelOptions(Strict):
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None
    max_output_tokens: int = Field(default=16_384, ge=1)
    """Ceiling of one reply; the budget may lower it further."""
    context_tokens: int = Field(default=160_000, ge=4_000)
    """How much of the model's window one request may fill."""
    seconds: int = Field(default=600, ge=1, le=3600)
    """Total time of one model call."""
    idle_seconds: int = Field(default=120, ge=1, le=3600)
    """Longest silence on a stream before it counts as cut."""


class Model(Strict):
    """One model of one provider."""

    provider: NonEmpty
    """anthropic, openai, openai-responses, openrouter, openai-compatible, replay, or a registered
    name."""
    name: NonEmpty
    base_url: NonEmpty | None = None
    """Needed by openai-compatible; for `replay`, the recording's file path."""
    api_key: CredentialRef | None = None
    """Which variable of the worker's environment holds the key; None: the provider's usual one."""
    options: ModelOptions = ModelOptions()
    price: Price | None = None
    """Overrides the known price."""


# --- the whole ------------------------------------------------------------------------------------


_MOST_MB = 16 * 1024 * 1024  # 16 TiB


class Limits(Strict):
    """Limits of one sandboxed command."""

    wall_seconds: int = Field(default=120, ge=1, le=86_400)
    cpu_seconds: int = Field(default=60, ge=1, le=86_400)
    memory_mb: int = Field(default=2048, ge=16, le=_MOST_MB)
    processes: int = Field(default=256, ge=1, le=4_194_304)
    open_files: int = Field(default=512, ge=16, le=1_048_576)
    file_mb: int = Field(default=1024, ge=1, le=_MOST_MB)
    tmp_mb: int = Field(default=256, ge=1, le=_MOST_MB)


Property = Literal[
    "fs_write", "fs_read", "proc_hidden", "net_deny", "egress_allowlist", "privesc", "syscalls",
    "memory", "pids", "cpu", "wall", "output", "disk", "kill_tree", "env",
]  # fmt: skip


class SandboxSpec(Strict):
    task_queue: NonEmpty | None = None
    """Queue of the workers that run tools, verification and landing; None: the run's own queue. Such
    workers need no model's credentials. On other hosts they need a shared snapshot store."""
    limits: Limits = Limits()
    env: tuple[NonEmpty, ...] = ()
    """Names of worker variables that sandboxed commands may see, besides the basic ones."""
    require: tuple[Property, ...] = ("fs_write", "net_deny", "kill_tree", "env")
    """What the worker's sandbox must enforce. Where it can't, the run ends before its first model
    call and says what is missing; an empty list accepts any worker."""


class Approval(Strict):
    """How long a run waits for a human, and what happens then."""

    seconds: int | None = Field(default=None, ge=0, le=LONGEST_SECONDS)
    """None waits without limit; 0 says that nobody can be asked, and every ask is a deny."""
    on_expiry: Literal["deny", "end_run"] = "deny"
    """deny: the act is refused and the run goes on; end_run: the outcome is approval_expired."""

    @property
    def can_ask(self) -> bool:
        return self.seconds != 0


class _Landing(Strict):
    approve: Literal["auto", "ask"] = "auto"
    """ask: a human sees the whole diff and the verification, and decides, before anything lands."""


class Apply(_Landing):
    """Write the change back into the source directory."""

    mode: Literal["apply"] = "apply"


class Branch(_Landing):
    """Commit the change on a branch of the source repository; its working tree stays as it is."""

    mode: Literal["branch"] = "branch"
    name: NonEmpty | None = None
    """None: io-harness/<run>."""


class Patch(_Landing):
    """Write the change as a unified diff to a file of the worker's host."""

    mode: Literal["patch"] = "patch"
    path: NonEmpty


def _usual_mode(landing: object) -> object:
    """Without a mode it is that of a contract without landing."""
    return {"mode": "apply", **landing} if isinstance(landing, dict) else landing


Landing = Annotated[
    Apply | Branch | Patch, Field(discriminator="mode"), BeforeValidator(_usual_mode)
]


class Containment(Strict):
    """Lets the agent start sub-agents, and bounds the whole tree of them."""

    agents: int = Field(default=8, ge=1, le=1_000)
    """Sub-agents of the whole tree, from its start to its end."""
    concurrent: int = Field(default=4, ge=1, le=64)
    """Sub-agents of the whole tree that work at the same time. One that waits for its own sub-agents
    doesn't count."""
    depth: int = Field(default=1, ge=1, le=5)
    """1: sub-agents can't start any themselves."""
    tokens: int | None = Field(default=None, ge=1)
    """Ceiling of the whole tree, the run itself included. None: the run's own budget, out of which
    each sub-agent's is taken, is the only bound; so with the next one."""
    usd: Decimal | None = Field(default=None, gt=0, max_digits=12, decimal_places=6)
    wall_seconds: int | None = Field(default=None, ge=1, le=LONGEST_SECONDS)
    """Time from the run's start to the end of the last agent."""


class NamedAgent(Strict):
    """A kind of sub-agent that the agent may start by name."""

    role: Annotated[NonEmpty, Field(max_length=20_000)]
    """Told to the sub-agent before its goal."""
    use: Annotated[str, Field(max_length=500)] = ""
    """What it is good for, told to the agent that may start it."""
    model: Model | None = None
    """None: the starting agent's chain of models."""
    steps: int | None = Field(default=None, ge=1, le=10_000)
    """Cap of its steps; never above that of the agent that starts it."""
    policy: PolicySpec | None = None
    """Narrows the starting agent's policy; nothing in it widens."""
    tools: tuple[NonEmpty, ...] | None = None
    """Those of the starting agent's built-in tools that it is offered too; None: all of them."""
    mcp_servers: tuple[NonEmpty, ...] | None = None
    """Ids of those of the starting agent's MCP servers that it has too; None: all of them."""


class TaskContract(Strict):
    """What is to be done, how it is judged, and what it may cost."""

    goal: Annotated[NonEmpty, Field(max_length=50_000)]
    constraints: tuple[NonEmpty, ...] = ()
    """Further sentences the agent is told to keep to."""
    workspace: Source
    verification: Verification
    budget: Budget = Budget()
    model: Model
    fallbacks: tuple[Model, ...] = ()
    """Tried in order when the model before fails in a way that another could cure."""
    landing: Landing = Apply()
    policy: PolicySpec = "careful"
    """What the agent may read, write, execute and reach: a preset's name, or a policy."""
    approval: Approval = Approval()
    sandbox: SandboxSpec = SandboxSpec()
    tools: tuple[NonEmpty, ...] | None = None
    """Built-in tools, and tools of the worker's own, that the agent is offered, by name; None: all. The
    harness's own (`finish`, `update_plan` and the like) are always there."""
    mcp_servers: tuple[McpServer, ...] = ()
    """Servers whose tools the agent is offered beside the built-in ones, under the same policy."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the structured answer that the agent must give when it finishes."""
    containment: Containment | None = None
    """None: the agent works alone."""
    agents: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")], NamedAgent] = {}
    """Kinds of sub-agents, by name."""
    labels: dict[NonEmpty, str] = {}
    """Free text for people's own use; kept in the result."""

    @model_validator(mode="after")
    def _landing_fits_source(self) -> Self:
        if isinstance(self.workspace, GitSource) and isinstance(self.landing, Apply):
            raise ValueError(
                "landing.mode 'apply' writes into a source directory, and a git URL has none; "
                "use {'mode': 'branch'} or {'mode': 'patch', 'path': ...}"
            )
        return self

    @model_validator(mode="after")
    def _named_agents_can_be_started(self) -> Self:
        if self.agents and self.containment is None:
            raise ValueError("agents: without 'containment' no sub-agent can be started; add it")
        return self

    @model_validator(mode="after")
    def _server_ids_are_unique_and_known(self) -> Self:
        check_ids(self.mcp_servers)
        ids = [server.id for server in self.mcp_servers]
        for name, kind in self.agents.items():
            for unknown in (i for i in kind.mcp_servers or () if i not in ids):
                raise ValueError(
                    f"agents.{name}.mcp_servers: there is no server {unknown!r}; mcp_servers has: "
                    f"{', '.join(ids) or 'none'}"
                )
        return self

    @model_validator(mode="after")
    def _reviewers_are_others(self) -> Self:
        if _reviews_in(self.verification) != len(self.reviews):
            raise ValueError(
                "verification: a review can't be in an 'any_of' or deeper than an 'all_of' that is the "
                "whole criterion, for it is asked when all else has passed; move it there"
            )
        kinds = (kind.model for kind in self.agents.values())
        authors = {(m.provider, m.name) for m in (*self.models, *kinds) if m is not None}
        for review in self.reviews:
            if (review.model.provider, review.model.name) in authors:
                raise ValueError(
                    f"verification: {review.model.provider}/{review.model.name} does the work, and "
                    "can't review it; name another model"
                )
        return self

    @property
    def models(self) -> tuple[Model, ...]:
        """The chain, first choice first."""
        return (self.model, *self.fallbacks)

    @property
    def reviews(self) -> tuple[ReviewCheck, ...]:
        """The criterion's, in its order."""
        whole = self.verification
        parts = whole.checks if isinstance(whole, AllOf) else (whole,)
        return tuple(part for part in parts if isinstance(part, ReviewCheck))

    @property
    def all_models(self) -> tuple[Model, ...]:
        """The chain, and after it the model of each review."""
        return (*self.models, *(review.model for review in self.reviews))


def _reviews_in(check: Verification) -> int:
    if isinstance(check, AllOf | AnyOf):
        return sum(_reviews_in(part) for part in check.checks)
    return isinstance(check, ReviewCheck)


def contract_schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of a contract, for clients in other languages."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TaskContract.model_json_schema(),
    }
