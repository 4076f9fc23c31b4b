"""What a run's commands reach over the network, on the real server and in the real sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from io_harness import trace
from io_harness.workflows.egress import EgressCount
from io_harness.workflows.payloads import ToolDone
from io_harness.workflows.result import Outcome, RunResult
from tests.scripted import call, turn

from .conftest import Repo, Start
from .site import Site, policy, serving
from .test_approvals import decide, pending
from .test_tool_calls import finish, fix


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as site:
        yield site


def counts(result: RunResult) -> dict[tuple[str, int | None], tuple[int, int]]:
    return {(c.host, c.port): (c.allowed, c.denied) for c in result.egress}


async def test_a_command_reaches_what_the_policy_allows_and_nothing_else(
    start: Start, site: Site, client: Client
) -> None:
    async with serving() as other:
        run = await start(
            turn(
                call("run_command", command=site.ask("one"), shows=("exit 0", "hello one")),
                call("run_command", command=other.ask("two"),
                     shows=("exit 1", f"network: {other.target} was refused, no rule",
                            "default of layer 'unattended'")),
            ),
            turn(fix(), finish()),
            policy=policy(("allow", site.target)),
        )  # fmt: skip
        result = await run.result()
        assert result.outcome is Outcome.SUCCESS, result.reason
        assert site.paths == ["one"]
        assert other.paths == []
        assert counts(result) == {
            ("127.0.0.1", site.port): (1, 0),
            ("127.0.0.1", other.port): (0, 1),
        }
        steps = [s async for s in trace.read(client, run.id) if isinstance(s, trace.ToolStep)]
        first = steps[0].outcome
        assert isinstance(first, ToolDone)
        assert first.egress == (
            EgressCount(by="commands", host="127.0.0.1", port=site.port, allowed=1),
        )


async def test_without_a_rule_there_is_no_network_at_all(start: Start, site: Site) -> None:
    """The control of the test above: the same command under the preset alone."""
    run = await start(
        turn(call("run_command", command=site.ask("one") + "; echo proxy: $http_proxy.",
                  shows=("proxy: .",))),
        turn(fix(), finish()),
    )  # fmt: skip
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == []
    assert result.egress == ()


async def test_a_rule_that_denies_is_named_to_the_model(start: Start, site: Site) -> None:
    run = await start(
        turn(call("run_command", command=site.ask("one"),
                  shows=(f"rule 'deny net {site.target}' of layer 'contract'",))),
        turn(fix(), finish()),
        policy=policy(("allow", "*:*"), ("deny", site.target)),
    )  # fmt: skip
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == []
    (count,) = result.egress
    assert "rule 'deny net" in count.why


async def test_set_up_and_criterion_reach_what_the_policy_allows(
    start: Start, site: Site, repo: Repo
) -> None:
    run = await start(
        turn(fix(), finish()),
        workspace={"kind": "directory", "path": str(repo.path), "setup": site.ask("setup")},
        verification={"kind": "command", "run": site.ask("verify")},
        policy=policy(("allow", site.target)),
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == ["setup", "setup", "verify"]
    assert counts(result) == {("127.0.0.1", site.port): (3, 0)}


async def test_a_workspace_narrows_what_its_run_reaches(
    start: Start, site: Site, repo: Repo, tmp_path: Path
) -> None:
    folder = repo.path / ".io-harness"
    folder.mkdir()
    (folder / "policy.yaml").write_text(
        "layers:\n- name: house\n  rules:\n"
        f"  - {{effect: deny, act: net, target: '{site.target}'}}\n"
    )
    run = await start(
        turn(call("run_command", command=site.ask("one"), shows=("of layer 'house'",))),
        turn(fix(), finish()),
        policy=policy(("allow", site.target)),
    )
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == []


async def test_a_host_that_asks_is_approved_and_the_command_runs_again(
    start: Start, site: Site
) -> None:
    run = await start(
        turn(call("run_command", command=f"echo x >> once.txt; {site.ask('one')}; cat once.txt",
                  shows=("hello one\nx\n",))),
        turn(call("run_command", command="wc -l < once.txt", shows=("1",))),
        turn(fix(), finish()),
        policy=policy(("ask", site.target)),
    )  # fmt: skip
    (request,) = await pending(run, 1)
    assert request.request.act == "net"
    assert request.request.target == site.target
    assert site.paths == []
    await decide(run, request.id, "approve")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == ["one"]
    assert counts(result)["127.0.0.1", site.port][0] == 1


async def test_a_host_that_a_human_denies_is_denied_to_the_command_which_goes_on(
    start: Start, site: Site
) -> None:
    run = await start(
        turn(call("run_command", command=f"{site.ask('one')}; echo went on",
                  shows=("was denied by ann: not there", "went on", "ask refused"))),
        turn(fix(), finish()),
        policy=policy(("ask", site.target)),
    )  # fmt: skip
    (request,) = await pending(run, 1)
    await decide(run, request.id, "deny", by="ann", reason="not there")
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == []


async def test_a_remembered_host_is_not_asked_about_again(start: Start, site: Site) -> None:
    run = await start(
        turn(call("run_command", command=site.ask("one"), shows=("hello one",))),
        turn(call("run_command", command=site.ask("two"), shows=("hello two",))),
        turn(fix(), finish()),
        verification={"kind": "command", "run": site.ask("verify")},
        policy=policy(("ask", site.target)),
    )
    (request,) = await pending(run, 1)
    await decide(run, request.id, "approve", remember=True)
    result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert site.paths == ["one", "two", "verify"]
