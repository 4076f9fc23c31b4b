"""Servers at a URL: both revisions, under the egress decision."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from io_harness.activities.mcp.calls import ANEW
from io_harness.activities.mcp.errors import NotStarted
from io_harness.activities.tools.context import AsksNeeded
from io_harness.workflows.mcp import McpTools
from io_harness.workflows.payloads import Grant
from io_harness.workflows.result import Outcome
from tests.integration.conftest import Start
from tests.scripted import call, turn

from .http_servers import OldServer, at_mcp, everything, http_server, newest, redirecting, serving
from .rig import Rig, allowing_net


async def test_a_stateless_server_of_the_newest_revision(rig: Rig) -> None:
    async with serving(newest().streamable_http_app()) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        source = await rig.record(server)
        assert source.protocol == "2026-07-28"
        assert source.software == "newest 1.0"
        seen = await rig.call(server, "add", a=2, b=3)
        assert seen.text.startswith("5")
        bad = await rig.call(server, "add", a="x", b=3)
        assert bad.is_error
        assert "a: 'x' is not of type 'integer'" in bad.text


async def test_a_question_between_two_rounds_is_declined_or_answered(rig: Rig) -> None:
    async with serving(newest().streamable_http_app()) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        assert "x: decline None" in (await rig.call(server, "book", place="x")).text
        asking = http_server(f"http://127.0.0.1:{port}/mcp", id="asks", questions="ask")
        proposing = http_server(f"http://127.0.0.1:{port}/mcp", id="proposes", questions="defaults")
        rig.recorded = McpTools()
        assert "x: accept {'seats': 2}" in (await rig.call(proposing, "dine", place="x")).text
        assert "x: decline None" in (await rig.call(proposing, "book", place="x")).text
        rig.recorded = McpTools()
        with pytest.raises(AsksNeeded) as asked:
            await rig.call(asking, "book", place="x")
        (request,) = asked.value.requests
        assert "How many?" in request.preview
        answered = Grant(digest=request.digest, answer="4")
        seen = await rig.call(asking, "book", grants=(answered,), place="x")
        assert "x: accept {'seats': 4}" in seen.text


async def test_a_change_of_its_list_is_heard_by_subscription(rig: Rig) -> None:
    async with serving(newest().streamable_http_app()) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        await rig.record(server)
        await asyncio.sleep(0.5)
        assert not rig.pool.stale("run-1")
        assert (await rig.call(server, "grow")).text.startswith("grown")
        async with asyncio.timeout(10):
            while not rig.pool.stale("run-1"):
                await asyncio.sleep(0.05)
        await rig.record(server)
        assert (await rig.call(server, "late")).text.startswith("late")


async def test_a_session_server_that_forgets_is_initialised_once_more(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TEST_TOKEN", "Bearer abc")
    old = OldServer()
    async with serving(at_mcp(old)) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(
            f"http://127.0.0.1:{port}/mcp", headers={"Authorization": "env:MCP_TEST_TOKEN"}
        )
        assert (await rig.call(server, "ping")).text == "in s0"
        old.forget()
        assert (await rig.call(server, "ping")).text == ANEW + "in s1"
        assert old.calls == 2
        assert {h.get("authorization") for h in old.headers} == {"Bearer abc"}


async def test_a_session_that_is_forgotten_again_and_again_is_an_error(rig: Rig) -> None:
    old = OldServer()

    async with serving(at_mcp(old)) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        await rig.record(server)
        old.forgotten |= {f"s{n}" for n in range(10)}
        seen = await rig.call(server, "ping")
        assert seen.is_error
        assert old.calls == 0
        assert len(old.sessions) == 2


async def test_a_host_that_the_policy_does_not_allow_is_not_dialled(rig: Rig) -> None:
    old = OldServer()
    async with serving(at_mcp(old)) as port:
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        with pytest.raises(NotStarted, match="egress refused"):
            await rig.listed(server)
        assert old.headers == []
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        assert [t.name for t in (await rig.listed(server)).tools] == ["ping"]


async def test_a_redirect_elsewhere_is_not_followed(rig: Rig) -> None:
    old = OldServer()
    async with serving(at_mcp(old)) as port:
        async with serving(redirecting(f"http://127.0.0.1:{port}/mcp")) as first:
            rig.policy = allowing_net(f"127.0.0.1:{first}", f"127.0.0.1:{port}")
            with pytest.raises(NotStarted, match=r"[Rr]edirect"):
                await rig.listed(http_server(f"http://127.0.0.1:{first}/mcp"))
        assert old.headers == []


async def test_an_answer_of_100_megabytes_is_refused(rig: Rig) -> None:
    old = OldServer()

    async def huge(request: Request) -> Response:
        if b'"tools/call"' not in await request.body():
            return await old(request)

        async def body() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 1024 * 1024

        return StreamingResponse(body(), media_type="application/json")

    async with serving(at_mcp(huge)) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        seen = await rig.call(http_server(f"http://127.0.0.1:{port}/mcp"), "ping")
        assert seen.is_error
        assert "more than 16 MiB" in seen.text


async def test_a_server_that_is_not_there_is_told(rig: Rig) -> None:
    async with serving(at_mcp(OldServer())) as port:
        pass
    rig.policy = allowing_net(f"127.0.0.1:{port}")
    with pytest.raises(NotStarted, match="ConnectError"):
        await rig.listed(http_server(f"http://127.0.0.1:{port}/mcp"))


async def test_the_reference_server_over_http_in_a_run(start: Start) -> None:
    async with everything() as port:
        rule = {"effect": "allow", "act": "net", "target": f"127.0.0.1:{port}"}
        run = await start(
            turn(call("mcp__web__get-sum", a=2, b=40, shows=("42",))),
            turn(call("mcp__web__echo", message="over http", shows=("over http",))),
            turn(call("finish", summary="done")),
            mcp_servers=[{"kind": "http", "id": "web", "url": f"http://127.0.0.1:{port}/mcp"}],
            policy={"preset": "unattended", "layers": [{"name": "t", "rules": [rule]}]},
            verification={"kind": "none"},
        )
        result = await run.result()
        assert result.outcome is Outcome.FINISHED, result.reason


async def test_an_address_that_programs_read_differently_ends_the_run(start: Start) -> None:
    run = await start(
        turn(call("finish", summary="done")),
        mcp_servers=[{"kind": "http", "id": "web", "url": "http://127.1/mcp"}],
    )
    result = await run.result()
    assert result.code == "McpServerRefused"
    assert "the address of the MCP server web is of no use" in result.reason


async def test_a_run_whose_policy_does_not_allow_the_host_ends_before_the_first_call(
    start: Start,
) -> None:
    run = await start(
        turn(call("finish", summary="done")),
        mcp_servers=[{"kind": "http", "id": "web", "url": "http://127.0.0.1:9/mcp"}],
    )
    result = await run.result()
    assert result.code == "McpServerRefused"
    assert "allow net of '127.0.0.1:9'" in result.reason
    assert result.spend.steps == 0
