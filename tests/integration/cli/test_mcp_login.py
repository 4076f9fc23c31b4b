"""`io-harness mcp login`, as a person uses it."""

import asyncio
import re
from pathlib import Path

import httpx2
import yaml

from io_harness.activities.mcp.oauth.logins import Logins
from io_harness.workflows.mcp_auth import Login
from tests.forks import Command
from tests.integration.mcp.oauth_servers import Protected, protected

from .conftest import Shell


def contract(tmp_path: Path, server: Protected, *allowed: int, **auth: object) -> Path:
    rules = [{"effect": "allow", "act": "net", "target": f"127.0.0.1:{port}"} for port in allowed]
    file = tmp_path / "task.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "goal": "g",
                "workspace": {"kind": "directory", "path": str(tmp_path)},
                "verification": {"kind": "none"},
                "model": {"provider": "replay", "name": "r", "base_url": "r.yaml"},
                "policy": {"preset": "unattended", "layers": [{"name": "t", "rules": rules}]},
                "mcp_servers": [
                    {
                        "kind": "http", "id": "web", "url": server.url,
                        "auth": {"kind": "login", **auth},
                    }
                ],
            }
        )
    )  # fmt: skip
    return file


def login(shell: Shell, file: Path, server: str) -> Command:
    return shell.start("mcp", "login", str(file), server, "--no-browser")


async def test_a_person_logs_in_in_the_browser(shell: Shell, tmp_path: Path) -> None:
    async with protected() as server:
        file = contract(tmp_path, server, server.port, server.authority.port)
        process = login(shell, file, "web")
        page = ""
        while not page:
            line = await asyncio.to_thread(process.stdout.readline)
            assert line, "it ended without a page to go to"
            if found := re.match(r"http\S+", line):
                page = found[0]
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            assert "You can close this page." in (await browser.get(page)).text
        done = await asyncio.to_thread(shell.end, process)
        assert done.code == 0, done.out + done.err
        assert f"Logged in at {server.authority.issuer}" in done.out
        kept = Logins(shell.home).read(server.url, Login())
        assert kept is not None
        assert kept.access_token in server.authority.valid
        assert kept.access_token not in done.out + done.err


async def test_what_the_policy_denies_is_named(shell: Shell, tmp_path: Path) -> None:
    async with protected() as server:
        process = login(shell, contract(tmp_path, server, server.port), "web")
        done = await asyncio.to_thread(shell.end, process)
        assert done.code == 1
        assert f"egress refused: 127.0.0.1:{server.authority.port}" in done.err
        assert server.authority.paths == []


async def test_a_server_that_takes_no_login_is_told(shell: Shell, tmp_path: Path) -> None:
    async with protected() as server:
        process = login(shell, contract(tmp_path, server), "other")
        done = await asyncio.to_thread(shell.end, process)
        assert done.code == 2
        assert "has no MCP server 'other'; it has: web" in done.err
