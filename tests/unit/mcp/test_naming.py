"""Names of servers' tools: accepted by every provider, told apart, and the same on every worker."""

import re

from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.mcp.naming import NAME_LENGTH, offered_name, offered_names, server_of
from io_harness.workflows.mcp_contract import SERVER_ID_LENGTH

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
server_ids = st.from_regex(r"\A[a-z0-9](?:[a-z0-9]|[_-][a-z0-9]){0,11}\Z")
tool_names = st.text(max_size=200)


def test_a_name_within_the_alphabet_is_kept() -> None:
    assert offered_name("fs", "read_text-file") == "mcp__fs__read_text-file"


def test_a_name_outside_the_alphabet_ends_in_its_hash() -> None:
    dotted, slashed = offered_name("s", "a.b"), offered_name("s", "a/b")
    assert dotted.startswith("mcp__s__a_b_")
    assert dotted != slashed


def test_a_long_name_is_cut_and_told_from_one_that_ends_otherwise() -> None:
    one, other = offered_name("s", "x" * 100), offered_name("s", "x" * 99 + "y")
    assert len(one) == len(other) == NAME_LENGTH
    assert one != other


def test_a_tool_that_is_named_like_anothers_replacement_gets_a_mark_too() -> None:
    taken = offered_name("s", "a.b").removeprefix("mcp__s__")
    names = offered_names("s", ["a.b", taken])
    assert len(names) == len(set(names.values())) == 2


def test_names_that_differ_in_case_only_are_both_marked() -> None:
    names = offered_names("s", ["Read", "read"])
    assert len({name.lower() for name in names.values()}) == 2


@given(server_ids, st.lists(tool_names, max_size=20))
def test_every_name_is_accepted_and_names_its_server(server: str, tools: list[str]) -> None:
    names = offered_names(server, tools)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert ACCEPTED.match(name)
        assert server_of(name) == server


@given(server_ids, st.lists(tool_names, max_size=10))
def test_the_order_of_the_list_does_not_matter(server: str, tools: list[str]) -> None:
    assert offered_names(server, tools) == offered_names(server, reversed(tools))


@given(server_ids, server_ids, tool_names, tool_names)
def test_two_servers_never_share_a_name(one: str, other: str, tool: str, another: str) -> None:
    if one != other:
        assert offered_name(one, tool) != offered_name(other, another)


def test_the_longest_server_id_leaves_room_for_a_name() -> None:
    name = offered_name("s" * SERVER_ID_LENGTH, "tool" * 40)
    assert len(name) == NAME_LENGTH
    assert name.removeprefix("mcp__").partition("__")[2].startswith("tooltooltool")


def test_other_names_have_no_server() -> None:
    for name in ("read_file", "mcp_read_resource", "mcp__", "mcp__a", "mcp____b"):
        assert server_of(name) is None
