"""`io-harness mcp login`, as a person uses it."""

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx2
import yaml

from io_harness.activities.mcp.oauth.logins import Logins
from io_harness.workflows.mcp_auth import Login
from tests.integration.mcp.oauth_servers import Protected, protected


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


async def started(file: Path, server: str, data_dir: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "io_harness", "mcp", "login", str(file), server, "--no-browser",
        env={**os.environ, "IO_HARNESS_DATA": str(data_dir)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


async def test_a_person_logs_in_in_the_browser(tmp_path: Path) -> None:
    async with protected() as server:
        file = contract(tmp_path, server, server.port, server.authority.port)
        process = await started(file, "web", tmp_path / "data")
        assert process.stdout is not None
        page = ""
        while not page:
            line = (await process.stdout.readline()).decode()
            assert line, "it ended without a page to go to"
            if found := re.match(r"http\S+", line):
                page = found[0]
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            assert "You can close this page." in (await browser.get(page)).text
        rest = (await process.stdout.read()).decode()
        assert await process.wait() == 0, rest
        assert f"Logged in at {server.authority.issuer}" in rest
        kept = Logins(tmp_path / "data").read(server.url, Login())
        assert kept is not None
        assert kept.access_token in server.authority.valid
        assert kept.access_token not in rest


async def test_what_the_policy_denies_is_named(tmp_path: Path) -> None:
    async with protected() as server:
        file = contract(tmp_path, server, server.port)
        process = await started(file, "web", tmp_path / "data")
        output, _ = await process.communicate()
        assert process.returncode == 1
        assert f"egress refused: 127.0.0.1:{server.authority.port}".encode() in output
        assert server.authority.paths == []


async def test_a_server_that_takes_no_login_is_told(tmp_path: Path) -> None:
    async with protected() as server:
        file = contract(tmp_path, server)
        process = await started(file, "other", tmp_path / "data")
        output, _ = await process.communicate()
        assert process.returncode == 2
        assert b"has no MCP server 'other'; it has: web" in output
