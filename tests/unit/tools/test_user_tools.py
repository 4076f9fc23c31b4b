"""Typed functions of a user's own as tools."""

from pathlib import Path

import pytest
from pydantic import BaseModel
from temporalio.exceptions import ApplicationError

from io_harness.activities.gate import Refused
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.context import AsksNeeded, ToolContext, WouldHaveActed
from io_harness.activities.tools.errors import InvalidArguments, OutsideWorkspace, ToolFailed
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.activities.tools.user import tool
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule
from tests.unit.tools.conftest import make_context, make_contract

OPEN = Policy(
    preset="unattended",
    layers=(
        Layer(name="mine", rules=(Rule(effect="allow", act="net", target="tickets.example"),)),
    ),
)
calls: list[int] = []


class Ticket(BaseModel):
    number: int
    title: str


@tool(effect="read", act="net", target="tickets.example:443")
async def ticket(number: int, verbose: bool = False) -> Ticket:
    """Look up a ticket
    by its number.

    More for people.
    """
    calls.append(number)
    if number < 0:
        raise LookupError("no such ticket")
    if number == 0:
        raise ApplicationError("the tracker is down")
    return Ticket(number=number, title="x" * (100_000 if verbose else 3))


@tool(effect="write", act="write", target=lambda path, text: path)
def append(path: str, text: str, ctx: ToolContext) -> str:
    """Append a line."""
    with open(ctx.root / path, "a") as file:
        file.write(text + "\n")
    return "appended"


async def use(
    used: AnyTool, root: Path, data_dir: Path, policy: Policy = OPEN, **arguments: object
) -> Observation:
    given = dict(arguments)
    context = make_context(root, data_dir, used.name, given, policy)  # type: ignore[arg-type]
    return await used.call(given, context)  # type: ignore[arg-type]


def test_a_tool_describes_itself() -> None:
    specs = {spec.name: spec for spec in ToolRegistry([ticket, append]).specs(make_contract())}
    assert specs["ticket"].description == "Look up a ticket by its number."
    assert specs["ticket"].input_schema == {
        "properties": {"number": {"type": "integer"}, "verbose": {"type": "boolean"}},
        "required": ["number"],
        "type": "object",
    }
    assert "ctx" not in str(specs["append"].input_schema)
    assert ToolRegistry([ticket]).effects(make_contract())["ticket"] == "read"


async def test_it_runs_under_the_policy_and_is_capped(root: Path, data_dir: Path) -> None:
    assert (await use(ticket, root, data_dir, number=7)).text == (
        '{\n "number": 7,\n "title": "xxx"\n}'
    )
    long = await use(ticket, root, data_dir, number=7, verbose=True)
    assert len(long.text.encode()) <= INLINE_OUTPUT_BYTES
    assert long.spill is not None
    with pytest.raises(InvalidArguments, match="number: Input should be a valid integer"):
        await use(ticket, root, data_dir, number="7")
    calls.clear()
    with pytest.raises(Refused):
        await use(ticket, root, data_dir, Policy(preset="unattended"), number=7)
    assert calls == []


async def test_its_target_can_depend_on_its_arguments(root: Path, data_dir: Path) -> None:
    assert (await use(append, root, data_dir, path="f", text="a")).text == "appended"
    assert (root / "f").read_text() == "a\n"
    with pytest.raises(AsksNeeded) as asked:
        await use(append, root, data_dir, Policy(preset="careful"), path="f", text="b")
    assert asked.value.requests[0].target == "f"
    assert '"text": "b"' in asked.value.requests[0].preview
    with pytest.raises(OutsideWorkspace):
        await use(append, root, data_dir, path="../f", text="b")
    assert (root / "f").read_text() == "a\n"


async def test_a_preview_has_no_effect(root: Path, data_dir: Path) -> None:
    from dataclasses import replace

    calls.clear()
    context = replace(
        make_context(root, data_dir, "ticket", {"number": 7}, OPEN), preview_only=True
    )
    with pytest.raises(WouldHaveActed):
        await ticket.call({"number": 7}, context)
    assert calls == []


async def test_its_failures_are_told(root: Path, data_dir: Path) -> None:
    with pytest.raises(ToolFailed, match="ticket: LookupError: no such ticket"):
        await use(ticket, root, data_dir, number=-1)
    with pytest.raises(ApplicationError):
        await use(ticket, root, data_dir, number=0)


def test_mistakes_fail_at_start_up() -> None:
    @tool(effect="read", act="read", target=".", name="read_file")
    def mine() -> str:
        """Read."""
        return ""

    with pytest.raises(ValueError, match="two tools are named 'read_file'"):
        ToolRegistry([mine])
    for taken in ("finish", "ask_user", "update_plan", "mcp__x__y"):

        @tool(effect="read", act="read", target=".", name=taken)
        def other() -> str:
            """Read."""
            return ""

        with pytest.raises(ValueError, match="name"):
            ToolRegistry([other])
    with pytest.raises(ValueError, match="'no name' is no name"):
        tool(effect="read", act="read", target=".", name="no name")(lambda: "")
    with pytest.raises(TypeError, match="no docstring"):
        tool(effect="read", act="read", target=".", name="silent")(lambda: "")

    def untyped(number) -> str:  # type: ignore[no-untyped-def]
        """Read."""
        return str(number)

    with pytest.raises(TypeError, match="'number' needs a type"):
        tool(effect="read", act="read", target=".")(untyped)
