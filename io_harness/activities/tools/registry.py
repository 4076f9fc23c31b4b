"""The tools of a worker, by name. Adding one is a module and a line here."""

from collections.abc import Iterable

from io_harness.activities.providers.base import ToolSpec
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.mcp import HELPERS
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
            if tool.name in self._tools or tool.name in _WORKFLOW_TOOLS:
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

    def get(self, name: str) -> AnyTool:
        """Raises `UnknownTool`, which tells the model the names that exist."""
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join([*self._tools, *_WORKFLOW_TOOLS])
            raise UnknownTool(f"there is no tool {name!r}; the tools are: {names}")
        return tool

    def effects(self, contract: TaskContract) -> dict[str, Effect]:
        """Effect class of each tool that `use_tool` runs under this contract."""
        return {name: tool.effect_under(contract) for name, tool in self._tools.items()}

    def specs(self, contract: TaskContract) -> tuple[ToolSpec, ...]:
        """What the model is offered under this contract: the same bytes on every turn."""
        own = (
            ToolSpec(tool.name, tool.description, tool.input_schema())
            for tool in self._tools.values()
        )
        return (*own, *_workflow_specs(contract))


def _workflow_specs(contract: TaskContract) -> tuple[ToolSpec, ...]:
    plan = ToolSpec(UPDATE_PLAN, "Show people your plan.", schema_of(UpdatePlanArgs))
    question = ToolSpec(
        ASK_USER,
        "Ask the human, if you can't go on without. The answer permits nothing.",
        schema_of(AskUserArgs),
    )
    asks = (question,) if contract.approval.can_ask else ()
    return (plan, *asks, finish_spec(contract))


def finish_spec(contract: TaskContract) -> ToolSpec:
    """`finish`, with the answer's schema where the contract asks for a structured answer."""
    schema = schema_of(FinishArgs)
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    properties = {name: field for name, field in properties.items() if name != "answer"}
    if contract.output_schema is not None:
        properties["answer"] = contract.output_schema
        required = [*required, "answer"]
    return ToolSpec(
        FINISH,
        "Say that the goal is reached. It is then verified; you hear if it fails.",
        {**schema, "properties": properties, "required": required},
    )
