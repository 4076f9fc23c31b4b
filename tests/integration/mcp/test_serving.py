"""`io-harness mcp`: another program hands over work, with the reference client."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp_types import CallToolResult, TextContent
from temporalio.client import Client

from io_harness.mcp_server import build_server
from tests.forks import Command
from tests.integration.conftest import FIXED, VERIFY, Repo
from tests.scripted import call, turn, write_script


def contract(repo: Repo, tmp_path: Path, **more: object) -> dict[str, object]:
    script = write_script(
        tmp_path / "script.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="add adds now")),
    )
    return {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(repo.path)},
        "verification": VERIFY,
        "model": {"provider": "replay", "name": "script", "base_url": script},
        **more,
    }


def value(result: CallToolResult) -> Any:
    assert not result.is_error, result.content
    return result.structured_content


def words(result: CallToolResult) -> str:
    assert result.is_error
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def test_work_is_handed_over_approved_and_fetched_on_standard_streams(
    worker: None, address: str, data_dir: Path, repo: Repo, tmp_path: Path
) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from io_harness.cli import main; main()", "mcp"],
        env={
            "TEMPORAL_ADDRESS": address,
            "IO_HARNESS_DATA": str(data_dir),
            "PATH": os.environ["PATH"],
        },
    )
    async with McpClient(command) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {
            "contract_schema", "start_run", "list_runs", "run_status", "follow_run", "run_result",
            "list_approvals", "decide", "cancel_run",
        }  # fmt: skip
        given = contract(repo, tmp_path, policy="careful")
        run = value(await client.call_tool("start_run", {"contract": given}))["run"]
        followed = value(await client.call_tool("follow_run", {"run": run}))
        assert followed["state"] == "waiting"
        assert not followed["ended"]
        assert "has not ended" in words(await client.call_tool("run_result", {"run": run}))
        (waiting,) = value(await client.call_tool("list_approvals", {"run": run}))["result"]
        assert "+    return a + b" in waiting["request"]["request"]["preview"]
        decision = {
            "run": run,
            "request": waiting["request"]["id"],
            "verdict": "approve",
            "by": "ann",
        }
        value(await client.call_tool("decide", decision))
        assert words(await client.call_tool("decide", decision))
        while not value(await client.call_tool("follow_run", {"run": run}))["ended"]:
            pass
        result = value(await client.call_tool("run_result", {"run": run}))
        assert result["outcome"] == "success"
        assert "+    return a + b" in result["landing"]["diff"]
    assert repo.read("calc.py") == FIXED


async def test_it_is_served_over_http_to_those_who_have_the_address(
    worker: None, address: str, data_dir: Path
) -> None:
    process = Command(
        "mcp", "--http", "0", cwd=Path.cwd(),
        environment={**os.environ, "TEMPORAL_ADDRESS": address, "IO_HARNESS_DATA": str(data_dir)},
    )  # fmt: skip
    url = (await asyncio.to_thread(process.stdout.readline)).split()[1]
    async with McpClient(url) as client:
        assert "start_run" in {tool.name for tool in (await client.list_tools()).tools}
    for wrong in (url[:-5] + "x/mcp", "/".join(url.split("/")[:3]) + "/mcp"):
        async with httpx2.AsyncClient(trust_env=False) as client:
            assert (await client.post(wrong, json={})).status_code == 404
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 60) == 0


@pytest.fixture
def served(client: Client, worker: None) -> Any:
    return build_server(client)


async def test_a_bad_contract_is_told_field_by_field(served: Any) -> None:
    async with McpClient(served) as client:
        said = words(await client.call_tool("start_run", {"contract": {"goal": "x", "budgte": 1}}))
    assert "budgte" in said
    assert "workspace" in said


async def test_an_unknown_run_is_told(served: Any) -> None:
    async with McpClient(served) as client:
        for tool in ("run_status", "run_result", "cancel_run"):
            assert "no run 'nothing'" in words(await client.call_tool(tool, {"run": "nothing"}))


async def test_a_run_that_could_not_start_says_why(served: Any, repo: Repo, tmp_path: Path) -> None:
    given = contract(repo, tmp_path, workspace={"kind": "directory", "path": "/no/such/place"})
    async with McpClient(served) as client:
        run = value(await client.call_tool("start_run", {"contract": given}))["run"]
        while not value(await client.call_tool("follow_run", {"run": run}))["ended"]:
            pass
        assert "/no/such/place" in words(await client.call_tool("run_result", {"run": run}))


async def test_a_running_run_is_not_started_twice_and_can_be_cancelled(
    served: Any, repo: Repo, tmp_path: Path
) -> None:
    given = contract(repo, tmp_path, policy="careful")
    async with McpClient(served) as client:
        first = {"contract": given, "id": f"mcp-twice-{tmp_path.name}"}
        run = value(await client.call_tool("start_run", first))["run"]
        assert "is running already" in words(await client.call_tool("start_run", first))
        assert value(await client.call_tool("follow_run", {"run": run}))["waits_for"]
        await client.call_tool("cancel_run", {"run": run})
        while not value(await client.call_tool("follow_run", {"run": run}))["ended"]:
            pass
        result = value(await client.call_tool("run_result", {"run": run}))
        assert result["outcome"] == "cancelled"


async def test_without_decide_a_client_can_only_look(client: Client, worker: None) -> None:
    async with McpClient(build_server(client, decides=False)) as mcp:
        names = {tool.name for tool in (await mcp.list_tools()).tools}
    assert "decide" not in names
    assert "list_approvals" in names


async def test_only_what_changes_nothing_claims_to_read_only(served: Any) -> None:
    async with McpClient(served) as client:
        tools = (await client.list_tools()).tools
    changing = {t.name for t in tools if not (t.annotations and t.annotations.read_only_hint)}
    assert changing == {"start_run", "decide", "cancel_run"}
