"""A sub-agent's contract is never wider than its parent's, at any depth."""

import pytest

from io_harness.workflows.agent_tools import AgentTask
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.derive import AgentRefused, derive
from io_harness.workflows.ledger import Ledger, Share
from io_harness.workflows.policy import policy_of

SERVERS = (
    {"id": "git", "kind": "stdio", "command": "git-mcp"},
    {"id": "web", "kind": "http", "url": "http://x.example/"},
)
READER = {"role": "You read.", "tools": ["read_file", "write_file"], "mcp_servers": ["git"]}
OTHER = {"provider": "openai-compatible", "name": "x", "base_url": "http://127.0.0.1:1/v1"}
SHARE = Share(tokens=1_000)


def contract(**more: object) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "all",
            "workspace": {"kind": "directory", "path": "/w"},
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "m"},
            "policy": "unattended",
            "containment": {"agents": 9, "depth": 3},
            "mcp_servers": SERVERS,
            "agents": {"reader": READER, "fetcher": {"role": "You fetch.", "mcp_servers": ["web"]}},
            **more,
        }
    )


def child(parent: TaskContract, **task: object) -> TaskContract:
    whole = {"goal": "part", "verification": {"kind": "none"}, **task}
    given = AgentTask.model_validate(whole)
    return derive(parent, given, Ledger(budget=parent.budget), SHARE)


def test_tools_and_servers_only_get_fewer() -> None:
    parent = contract(tools=["read_file", "grep"])
    first = child(parent, agent="reader", agents=4)
    assert first.tools == ("read_file",)
    assert [server.id for server in first.mcp_servers] == ["git"]
    second = child(first, agent="fetcher")
    assert second.tools == ("read_file",)
    assert second.mcp_servers == ()


def test_a_policy_only_narrows() -> None:
    parent = contract(policy="careful")
    wide = child(parent, policy="unattended", agents=1)
    assert policy_of(parent.policy).explain("write", "a.txt").effect == "ask"
    assert policy_of(wide.policy).explain("write", "a.txt").effect == "ask"
    narrow = child(contract(), policy="read-only", agents=1)
    assert policy_of(narrow.policy).explain("write", "a.txt").effect == "deny"
    deeper = child(narrow, policy="unattended")
    assert policy_of(deeper.policy).explain("write", "a.txt").effect == "deny"
    assert policy_of(child(contract()).policy).explain("write", "a.txt").effect == "allow"


def test_what_a_task_does_not_name_is_the_parents() -> None:
    parent = contract(
        sandbox={"require": ["fs_write"], "limits": {"wall_seconds": 7}}, approval={"seconds": 5}
    )
    found = child(parent, steps=10_000)
    for name in ("sandbox", "approval", "workspace", "model"):
        assert getattr(found, name) == getattr(parent, name)
    assert found.budget.steps == parent.budget.steps
    assert found.budget.tokens == SHARE.tokens


def test_depth_counts_down() -> None:
    second = child(child(contract(), agents=5), agents=2)
    assert second.containment is not None
    assert second.containment.depth == 1
    with pytest.raises(AgentRefused, match=r"containment\.depth is reached"):
        child(second, agents=1)
    assert child(second).containment is None


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"agent": "cook"}, "no kind 'cook'; there are: reader, fetcher"),
        ({"model": "openai/x"}, "has no 'openai/x'; it has replay/m"),
        ({"verification": {"kind": "hope"}}, "hope"),
        ({"policy": "permissive"}, "permissive"),
        (
            {"verification": {"kind": "review", "rubric": "r", "model": OTHER}},
            "names a model to ask",
        ),
    ],
)
def test_a_task_that_cannot_be_is_refused(task: dict[str, object], said: str) -> None:
    with pytest.raises(AgentRefused, match=said):
        child(contract(), **task)
