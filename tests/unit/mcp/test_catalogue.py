"""From what servers declare to what is offered: in one order, capped, with what was left out."""

import json
import random
from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from io_harness.activities.mcp import catalogue
from io_harness.activities.mcp.catalogue import Listed, digest_of, effect_of, fitting, offer
from io_harness.workflows.mcp import LIST_BYTES
from io_harness.workflows.mcp_contract import HttpServer, StdioServer

SERVER = StdioServer(id="s", command="server")


def tool(name: str, **more: Any) -> Tool:
    return Tool(name=name, **{"description": "d", "input_schema": {"type": "object"}, **more})


def offered(*tools: Tool, server: StdioServer | HttpServer = SERVER) -> tuple[list[str], str]:
    source, found = offer(server, Listed("2026-07-28", "x 1", tools))
    return [t.name for t in found], "\n".join(source.notes)


def test_the_order_is_that_of_names_whatever_order_the_server_chose() -> None:
    tools = [tool(name) for name in "cabed"]
    first, _ = offered(*tools)
    random.Random(1).shuffle(tools)
    assert offered(*tools)[0] == first == [f"mcp__s__{n}" for n in "abcde"]


def test_the_same_tool_twice_is_one_and_another_of_its_name_is_left_out_with_a_note() -> None:
    assert offered(tool("a"), tool("a")) == (["mcp__s__a"], "")
    names, notes = offered(tool("a"), tool("a", description="other"))
    assert names == ["mcp__s__a"]
    assert "a second tool of that name" in notes


def test_only_what_the_contract_wants_is_offered() -> None:
    server = StdioServer(id="s", command="x", tools=("read_*", "list"))
    names, notes = offered(tool("read_a"), tool("write_a"), tool("list"), server=server)
    assert names == ["mcp__s__list", "mcp__s__read_a"]
    assert notes == ""


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "no JSON object"),
        ({"type": "object", "properties": {"a": {"type": "nothing"}}}, "not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "https://example.org/s"}}}, "not fetched"),
        ({"description": "x" * 20_000}, "bytes"),
    ],
)
def test_a_schema_that_cant_be_used_leaves_the_tool_out(schema: dict[str, Any], why: str) -> None:
    names, notes = offered(tool("bad", input_schema=schema), tool("good"))
    assert names == ["mcp__s__good"]
    assert why in notes


def test_descriptions_are_cut_and_hidden_characters_dropped() -> None:
    hidden = "read\u200b \u202eevil\u202c\x1b[31m \U000e0041" + "x" * 10_000
    _, (found,) = offer(SERVER, Listed("v", "s", (tool("a", description=hidden),)))
    assert found.description.startswith("read evil[31m x")
    assert len(found.description) < 4_100
    assert found.description.endswith("[cut]")


def test_a_name_beyond_all_measure_is_left_out() -> None:
    tools = (tool("a" * 128), tool("b" * 129), tool("c" * 100_000))
    source, kept = offer(SERVER, Listed("2026-07-28", "x 1", tools))
    assert [t.tool for t in kept] == ["a" * 128]
    assert len(source.notes) == 2
    assert "129 characters" in source.notes[0]
    assert all(len(note) < 300 for note in source.notes)


def test_too_many_tools_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MAX_TOOLS", 3)
    names, notes = offered(*(tool(f"t{n}") for n in range(5)))
    assert names == ["mcp__s__t0", "mcp__s__t1", "mcp__s__t2"]
    assert "a server may offer 3 tools" in notes


def test_the_whole_list_stays_under_its_ceiling() -> None:
    big = {"type": "object", "description": "x" * 15_000}
    tools = tuple(tool(f"t{n:03}", input_schema=big) for n in range(60))
    sources, found = fitting([offer(SERVER, Listed("v", "s", tools))])
    assert 10 < len(found) < 60
    assert sum(len(t.model_dump_json()) for t in found) <= LIST_BYTES
    assert f"{60 - len(found)} tools left out" in sources[0].notes[-1]


def test_every_part_of_a_declaration_is_in_its_digest() -> None:
    plain = tool("a")
    others = [
        tool("a", description="e"),
        tool("a", title="t"),
        tool("a", input_schema={"type": "object", "properties": {}}),
        tool("a", output_schema={"type": "object"}),
        tool("a", annotations=ToolAnnotations(read_only_hint=True)),
    ]
    digests = {digest_of(t) for t in (plain, *others)}
    assert len(digests) == 6
    assert digest_of(Tool.model_validate(json.loads(plain.model_dump_json()))) == digest_of(plain)


def test_hints_choose_how_a_lost_call_is_dealt_with() -> None:
    read = ToolAnnotations(read_only_hint=True)
    again = ToolAnnotations(idempotent_hint=True)
    writer = StdioServer(id="s", command="x", workspace="write")
    assert effect_of(read, SERVER) == "read"
    assert effect_of(read, writer) == "write"
    assert effect_of(again, SERVER) == "write"
    assert effect_of(None, SERVER) == "unrepeatable"
    assert effect_of(ToolAnnotations(destructive_hint=False), SERVER) == "unrepeatable"
