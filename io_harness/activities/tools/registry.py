"""The tools of a worker, by name. Adding one is a module and a line here."""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from io_harness.activities.failure import failure
from io_harness.activities.providers.base import ToolSpec
from io_harness.workflows.agent_tools import (
    AGENT_TOOLS,
    COLLECT_AGENTS,
    MESSAGE_AGENT,
    REQUEST_BUDGET,
    SPAWN_AGENTS,
    BudgetArgs,
    CollectArgs,
    MessageArgs,
    SpawnArgs,
    agent_tools,
)
from io_harness.workflows.contract import AllOf, JsonSchemaCheck, TaskContract, Verification
from io_harness.workflows.mcp import HELPERS
from io_harness.workflows.model import Strict
from io_harness.workflows.own_tools import (
    ASK_USER,
    FINISH,
    UPDATE_PLAN,
    AskUserArgs,
    FinishArgs,
    UpdatePlanArgs,
)
from io_harness.workflows.payloads import Effect

from .apply_patch import ApplyPatch
from .base import AnyTool, schema_of
from .command import RunCommand
from .edit_file import EditFile
from .errors import UnknownTool
from .git_tools import GitCommit, GitDiff, GitLog, GitStatus
from .job_tools import JobOutput, StartJob, StopJob
from .list_files import ListFiles
from .read_file import ReadFile
from .read_output import ReadOutput
from .search import Find, Grep
from .write_file import WriteFile

_BUILT_IN: tuple[AnyTool, ...] = (
    ListFiles(),
    Find(),
    Grep(),
    ReadFile(),
    WriteFile(),
    EditFile(),
    ApplyPatch(),
    RunCommand(),
    ReadOutput(),
    StartJob(),
    JobOutput(),
    StopJob(),
    GitStatus(),
    GitDiff(),
    GitLog(),
    GitCommit(),
)
_BETWEEN_AGENTS: dict[str, tuple[str, type[Strict]]] = {
    SPAWN_AGENTS: (
        "Start sub-agents for independent parts of the task. Each works on its own copy of your "
        "files as they are now; verified work is merged back. They end when you finish. What they "
        "tell you is short: let them write long results to files.",
        SpawnArgs,
    ),
    COLLECT_AGENTS: ("Merge and report work of sub-agents.", CollectArgs),
    MESSAGE_AGENT: (
        "Write to a sub-agent of yours or to your parent, who reads it before its next step.",
        MessageArgs,
    ),
    REQUEST_BUDGET: ("Ask your parent for more budget. You can do this once.", BudgetArgs),
}
_WORKFLOW_TOOLS = (UPDATE_PLAN, ASK_USER, FINISH)
"""Handled by the workflow itself; the names are taken."""


class ToolRegistry:
    """Built-in tools and a user's own.

    Raises:
        ValueError: two tools of one name.
    """

    def __init__(self, user_tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in (*_BUILT_IN, *user_tools):
            if tool.name in self._tools or tool.name in (*_WORKFLOW_TOOLS, *AGENT_TOOLS):
                raise ValueError(
                    f"two tools are named {tool.name!r}; give yours another name (taken: "
                    f"{', '.join(sorted([*self._tools, *_WORKFLOW_TOOLS]))})"
                )
            if tool.name.startswith(HELPERS):
                raise ValueError(
                    f"the tool {tool.name!r} must have another name: names that begin with "
                    f"{HELPERS!r} are those of MCP servers' tools"
                )
            self._tools[tool.name] = tool

    def check(self, contract: TaskContract) -> None:
        """Raises:
        ApplicationError: `InvalidContract`, if the contract names a tool that this worker lacks.
        """
        kinds = {f"agents.{name}.tools": kind.tools for name, kind in contract.agents.items()}
        for field, names in {"tools": contract.tools, **kinds}.items():
            for unknown in (name for name in names or () if name not in self._tools):
                raise failure(
                    "InvalidContract",
                    f"{field}: this worker has no tool {unknown!r}; it has: "
                    f"{', '.join(sorted(self._tools))}",
                )

    def get(self, name: str, contract: TaskContract | None = None) -> AnyTool:
        """Raises `UnknownTool`, which tells the model the names that exist (under the contract, if one
        is given)."""
        offered = self._offered(contract) if contract is not None else self._tools
        if name not in offered:
            names = ", ".join([*offered, *_WORKFLOW_TOOLS])
            raise UnknownTool(f"there is no tool {name!r}; the tools are: {names}")
        return offered[name]

    def effects(self, contract: TaskContract) -> dict[str, Effect]:
        """Effect class of each tool that `use_tool` runs under this contract."""
        return {name: tool.effect_under(contract) for name, tool in self._offered(contract).items()}

    def specs(self, contract: TaskContract, sub_agent: bool = False) -> tuple[ToolSpec, ...]:
        """What the model is offered under this contract: the same bytes on every turn."""
        own = (
            ToolSpec(tool.name, tool.description, tool.input_schema())
            for tool in self._offered(contract).values()
        )
        return (*own, *_workflow_specs(contract, sub_agent))

    def _offered(self, contract: TaskContract) -> dict[str, AnyTool]:
        if contract.tools is None:
            return self._tools
        return {name: tool for name, tool in self._tools.items() if name in contract.tools}


def _workflow_specs(contract: TaskContract, sub_agent: bool) -> tuple[ToolSpec, ...]:
    plan = ToolSpec(UPDATE_PLAN, "Show people your plan.", schema_of(UpdatePlanArgs))
    question = ToolSpec(
        ASK_USER,
        "Ask the human, if you can't go on without. The answer permits nothing.",
        schema_of(AskUserArgs),
    )
    asks = (question,) if contract.approval.can_ask else ()
    return (plan, *asks, *_agent_specs(contract, sub_agent), finish_spec(contract))


def _agent_specs(contract: TaskContract, sub_agent: bool) -> Iterator[ToolSpec]:
    kinds = "".join(f" {name}: {kind.use}." for name, kind in contract.agents.items())
    for name in agent_tools(contract, sub_agent=sub_agent):
        description, arguments = _BETWEEN_AGENTS[name]
        more = f" Kinds:{kinds}" if kinds and name == SPAWN_AGENTS else ""
        yield ToolSpec(name, description + more, schema_of(arguments))


def finish_spec(contract: TaskContract) -> ToolSpec:
    """`finish`, with the answer's schema where the contract asks for a structured answer."""
    schema = schema_of(FinishArgs)
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    properties = {name: field for name, field in properties.items() if name != "answer"}
    answer = contract.output_schema or _answer_schema(contract.verification)
    schema = {**schema, "properties": properties}
    if answer is not None:
        properties["answer"] = {k: v for k, v in answer.items() if k not in _OF_THE_ROOT}
        schema |= {"required": [*required, "answer"], "additionalProperties": False}
        schema |= {k: v for k, v in answer.items() if k in _OF_THE_ROOT}
    description = "Say that the goal is reached. It is then verified; you hear if it fails."
    return ToolSpec(FINISH, description, schema, enforced=answer is not None)


_OF_THE_ROOT = ("$schema", "$defs", "definitions")
"""Keywords to which references lead from the root of a schema."""


def _answer_schema(check: Verification) -> dict[str, JsonValue] | None:
    """The schema under which the answer must be valid for the check to pass."""
    match check:
        case JsonSchemaCheck():
            return check.json_schema
        case AllOf():
            return next((s for c in check.checks if (s := _answer_schema(c))), None)
        case _:
            return None
