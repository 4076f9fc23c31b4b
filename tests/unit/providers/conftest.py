"""Each API as a provider that talks to a fake server."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from io_harness.activities.providers.base import (
    CallProgress,
    ModelReply,
    ModelRequest,
    Provider,
    ToolSpec,
)
from io_harness.activities.providers.registry import provider_for
from io_harness.activities.providers.wire import Wire
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import Model, ModelOptions
from io_harness.workflows.messages import Message, UserMessage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Say

APIS = {
    "anthropic": "",
    "openai": "/v1",
    "openai-responses": "/v1",
    "openrouter": "/api/v1",
    "openai-compatible": "/v1",
}
"""Provider to the path of its base URL on the fake."""

READ_FILE = ToolSpec(
    "read_file",
    "Read a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
)

FINISH = ToolSpec(
    "finish",
    "Say that it is done.",
    {
        "type": "object",
        "properties": {"answer": {"type": "array", "items": {"type": "string"}}},
        "required": ["answer"],
        "additionalProperties": False,
    },
    enforced=True,
)

Ask = Callable[..., "object"]


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    wire = Wire()
    yield wire
    await wire.aclose()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key that must never show up anywhere but in the request's header."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-Zx81kQ-very-secret")
    return "sk-test-Zx81kQ-very-secret"


def model_at(api: str, fake: FakeProvider, **fields: object) -> Model:
    return Model.model_validate(
        {
            "provider": api,
            "name": "fake-model",
            "base_url": fake.url + APIS[api],
            "api_key": "env:ANTHROPIC_API_KEY",
            **fields,
        }
    )


def provider_at(api: str, fake: FakeProvider, wire: Wire) -> Provider:
    return provider_for(model_at(api, fake), Settings(data_dir=Path("/nowhere")), wire)


def ask(*messages: Message, **fields: object) -> ModelRequest:
    conversation = messages or (UserMessage(origin="goal", text="Fix the bug."),)
    return ModelRequest(
        **{  # type: ignore[arg-type]
            "model": "fake-model",
            "system": "Be brief.",
            "messages": conversation,
            "max_output_tokens": 1000,
            "tools": (READ_FILE,),
            "options": ModelOptions(idle_seconds=5),
            **fields,
        }
    )


async def reply_of(provider: Provider, request: ModelRequest | None = None) -> ModelReply:
    return await provider.complete(request or ask(), CallProgress())


async def sent(api: str, wire: Wire, request: ModelRequest) -> dict[str, Any]:
    """The body of the request as it arrives at a server."""
    async with FakeProvider(Say("ok")) as fake:
        await provider_at(api, fake, wire).complete(request, CallProgress())
    body: dict[str, Any] = fake.requests[0].body
    return body
