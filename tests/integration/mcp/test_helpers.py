"""Resources and prompts of servers, and a pool that leaks nothing."""

import asyncio
import os
from pathlib import Path

from io_harness.activities.gate import Gate
from io_harness.activities.mcp.catalogue import Server
from io_harness.activities.mcp.helpers import McpHelperTool, helper_tools
from io_harness.activities.tools.errors import ToolError
from io_harness.workflows.messages import Observation
from io_harness.workflows.result import Outcome
from tests.integration.conftest import Start
from tests.scripted import call, turn
from tests.unit.tools.conftest import make_context

from .http_servers import http_server, newest, serving
from .npm_servers import stdio_server
from .rig import Rig, allowing_net, hostile


async def use(rig: Rig, server: Server, name: str, /, **arguments: object) -> Observation:
    listed = await rig.listed(server)
    spec = next(t for t in helper_tools([(server, listed)]) if t.name == name)
    given = {"server": server.id, **arguments}
    context = make_context(rig.root, rig.data_dir, name, given, rig.policy)  # type: ignore[arg-type]
    object.__setattr__(context, "gate", Gate(rig.policy))
    try:
        return await McpHelperTool(spec, (server,), rig.policy, rig.pool).call(
            given,  # type: ignore[arg-type]
            context,
        )
    except ToolError as error:
        return Observation(text=str(error), is_error=True)


async def test_resources_and_prompts_are_listed_and_read(rig: Rig) -> None:
    async with serving(newest().streamable_http_app()) as port:
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        server = http_server(f"http://127.0.0.1:{port}/mcp")
        listed = await use(rig, server, "mcp_list_resources")
        assert listed.text == "notes://today: today - What is up"
        read = await use(rig, server, "mcp_read_resource", uri="notes://today")
        assert read.text == "[resource notes://today]\nthe note of today"
        missing = await use(rig, server, "mcp_read_resource", uri="notes://nothing")
        assert missing.is_error
        prompts = await use(rig, server, "mcp_list_prompts")
        assert prompts.text == "greet: arguments: who - A greeting."
        got = await use(rig, server, "mcp_get_prompt", name="greet", arguments={"who": "Ann"})
        assert got.text == "[user]\nSay hello to Ann."
        wrong = await use(rig, server, "mcp_get_prompt", name="greet", arguments={"who": 1})
        assert "is not of type 'string'" in wrong.text


async def test_helpers_are_offered_only_where_a_server_has_a_use_for_them(rig: Rig) -> None:
    server = hostile()
    assert helper_tools([(server, await rig.listed(server))]) == ()


async def test_the_memory_server_and_a_resource_in_a_run(start: Start, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    memory = stdio_server("memory", write=[str(kept)])
    # `env` hands the server a setting that is no secret; it is part of the command that is approved.
    memory["args"] = [f"MEMORY_FILE_PATH={kept}/graph.json", "node", *memory["args"]]  # type: ignore[misc]
    memory["command"] = "env"
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    run = await start(
        turn(call("mcp__memory__create_entities", entities=[entity], shows=("likes tea",))),
        turn(call("mcp__memory__search_nodes", query="tea", shows=("Ann",))),
        turn(call("mcp_list_resources", server="everything", shows=("demo://",))),
        turn(call("finish", summary="done")),
        mcp_servers=[memory, stdio_server("everything", "stdio")],
        verification={"kind": "none"},
    )
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert "likes tea" in (kept / "graph.json").read_text()


async def test_two_hundred_runs_leave_nothing_behind(rig: Rig) -> None:
    """Connections opened and closed, some while a call hangs; 8 at a time."""
    server = hostile(call_seconds=60)
    gate = asyncio.Semaphore(8)

    async def run(number: int) -> None:
        async with gate:
            mine = Rig(rig.root, rig.data_dir, rig.pool, run_key=f"run-{number}")
            await mine.record(server)
            hanging = asyncio.create_task(mine.call(server, "hang")) if number % 5 == 0 else None
            seen = await mine.call(server, "progress" if hanging is None else "ok")
            assert seen.text == ("done" if hanging is None else "ok {}")
            await rig.pool.close_run(mine.run_key)
            if hanging is not None:
                assert "the connection ended during the call" in (await hanging).text

    await asyncio.gather(*(run(n) for n in range(8)))  # what is made once is made now
    before = (open_files(), len(asyncio.all_tasks()), children())
    await asyncio.gather(*(run(n) for n in range(8, 208)))
    assert rig.pool.size == 0
    assert len(rig.pool._locks) == 0
    await asyncio.sleep(0.5)
    assert open_files() <= before[0] + 3
    assert len(asyncio.all_tasks()) <= before[1] + 1
    assert children() <= before[2]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
