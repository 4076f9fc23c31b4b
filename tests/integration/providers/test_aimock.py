"""Judge: aimock, an independent server of the same APIs, from npm."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from io_harness.activities.providers.base import (
    CallProgress,
    Failure,
    ModelRequest,
    Provider,
    ProviderError,
)
from io_harness.activities.providers.registry import provider_for
from io_harness.activities.providers.wire import Wire
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import Model
from io_harness.workflows.messages import (
    AssistantMessage,
    ModelRef,
    Observation,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.unit.providers.conftest import APIS, ask

PACKAGE = "@copilotkit/aimock@1.43.0"
INSTALL_SECONDS = 120
GOAL = UserMessage(origin="goal", text="Fix the bug.")
FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "Fix the bug.", "hasToolResult": False},
            "response": {
                "content": "Reading — naïve 🦀.",
                "reasoning": "Let me think.",
                "toolCalls": [
                    {"name": "read_file", "arguments": {"path": "ä.py"}},
                    {"name": "read_file", "arguments": {"path": "b.py"}},
                ],
            },
        },
        {
            "match": {"userMessage": "Fix the bug.", "hasToolResult": True},
            "response": {"content": "Done."},
        },
        {
            "match": {"userMessage": "Too fast."},
            "response": {
                "error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429,
            },
        },
    ]
}  # fmt: skip


@pytest.fixture(scope="module")
def aimock(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a running server. Installed once into pytest's cache."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm and node are not installed")
    home = Path(request.config.cache.mkdir("aimock"))
    program = home / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not program.exists():
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), PACKAGE]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {PACKAGE} in {INSTALL_SECONDS} s")
        if done.returncode != 0:
            pytest.skip(f"npm can't install {PACKAGE}: {done.stderr[-300:]}")
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    server = subprocess.Popen(
        [node, str(program), "-p", "0", "-f", str(fixtures), "--strict", "-c", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        seen = ""
        while (listening := re.search(r"listening on (http://127\.0\.0\.1:\d+)", seen)) is None:
            line = server.stdout.readline()
            assert line, f"aimock ended: {seen}"
            seen += line
        yield listening.group(1)
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(params=("anthropic", "openai", "openai-responses"))
async def provider(
    request: pytest.FixtureRequest, aimock: str, monkeypatch: pytest.MonkeyPatch
) -> Provider:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = Model(
        provider=request.param,
        name="m",
        base_url=aimock + APIS[request.param],
        api_key="env:OPENAI_API_KEY",
    )
    return provider_for(model, Settings(data_dir=Path("/nowhere")), Wire())


def _ask(*messages: object) -> ModelRequest:
    return ask(*messages, model="m")  # type: ignore[arg-type]


async def test_a_tool_round(provider: Provider) -> None:
    first = await provider.complete(_ask(GOAL), CallProgress())
    calls = [part for part in first.parts if isinstance(part, ToolCall)]
    assert [c.arguments for c in calls] == [{"path": "ä.py"}, {"path": "b.py"}]
    assert Text(text="Reading — naïve 🦀.") in first.parts
    assert [p.text for p in first.parts if isinstance(p, Reasoning)] == ["Let me think."]
    assert first.finish == "tool_use"
    said = AssistantMessage(parts=first.parts, served_by=ModelRef(provider=provider.name, name="m"))
    results = [
        ToolMessage(call_id=c.id, name=c.name, observation=Observation(text="x")) for c in calls
    ]
    second = await provider.complete(_ask(GOAL, said, *results), CallProgress())
    assert [p for p in second.parts if not isinstance(p, Reasoning)] == [Text(text="Done.")]
    assert second.finish == "stop"
    assert second.usage.input > 0
    assert second.usage.output > 0


async def test_errors(provider: Provider) -> None:
    limited = UserMessage(origin="goal", text="Too fast.")
    with pytest.raises(ProviderError, match="Slow down") as caught:
        await provider.complete(_ask(limited), CallProgress())
    assert caught.value.failure is Failure.RATE_LIMITED
    assert caught.value.retry_after is not None
