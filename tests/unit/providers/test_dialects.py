"""Servers that speak Chat Completions in their own way."""

import json
from decimal import Decimal
from typing import Any

import pytest

from io_harness.activities.providers.base import CallProgress, Failure, ModelReply, ProviderError
from io_harness.activities.providers.wire import Wire
from io_harness.workflows.messages import AssistantMessage, ModelRef, Reasoning, Text, ToolCall
from io_harness.workflows.result import Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Raw, Say
from tests.unit.providers.conftest import ask, provider_at, reply_of

pytestmark = pytest.mark.usefixtures("key")


def stream(*chunks: dict[str, Any], done: bool = True) -> Raw:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Raw(("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode())


def delta(finish: str | None = None, **fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(**fields: object) -> dict[str, Any]:
    name, arguments = fields.pop("name", None), fields.pop("arguments", None)
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return delta(tool_calls=[{**fields, "function": function}])


async def read(wire: Wire, raw: Raw, api: str = "openai-compatible") -> ModelReply:
    async with FakeProvider(raw) as fake:
        return await reply_of(provider_at(api, fake, wire))


A = ToolCall(id="a", name="read_file", arguments={"path": "a"})
B = ToolCall(id="b", name="read_file", arguments={"path": "b"})


@pytest.mark.parametrize(
    "chunks",
    [
        [
            call(index=0, id="a", name="read_file", arguments='{"path": "a"}'),
            call(index=0, id="b", name="read_file", arguments='{"path": "b"}'),
        ],
        [
            call(id="a", name="read_file", arguments='{"path": "a"}'),
            call(id="b", name="read_file", arguments='{"path": "b"}'),
        ],
        [
            call(index=0, id="a", name="read_file", arguments='{"path'),
            call(index=0, id="a", name="read_file", arguments='": "a"}'),
            call(index=1, id="b", name="read_file", arguments={"path": "b"}),
        ],
        [
            call(id="a", name="read_file"),
            call(arguments='{"path": "a"}'),
            call(id="b", name="read_file"),
            call(arguments='{"path": "b"}'),
        ],
    ],
    ids=["one index for all", "no index", "id in every piece, arguments as object", "no id"],
)
async def test_pieces_of_calls_are_put_together(wire: Wire, chunks: list[dict[str, Any]]) -> None:
    reply = await read(wire, stream(*chunks, delta("tool_calls")))
    assert reply.parts == (A, B)


async def test_a_stop_with_calls_is_tool_use_and_the_reverse(wire: Wire) -> None:
    made = call(index=0, id="a", name="read_file", arguments='{"path": "a"}')
    assert (await read(wire, stream(made, delta("stop")))).finish == "tool_use"
    assert (await read(wire, stream(delta(content="x"), delta("tool_calls")))).finish == "stop"


async def test_content_as_a_list_of_parts(wire: Wire) -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hello"}]
    reply = await read(wire, stream(delta(content=parts), delta("stop")))
    assert reply.parts == (Text(text="Hello"),)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35,
             "completion_tokens_details": {"reasoning_tokens": 20}},
            Usage(input=10, output=25, reasoning=20),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 25, "total_tokens": 35,
             "completion_tokens_details": {"reasoning_tokens": 20}},
            Usage(input=10, output=25, reasoning=20),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8},
            Usage(input=2, cached=8, output=5),
        ),
    ],
    ids=["xAI: reasoning outside", "OpenAI: reasoning inside", "DeepSeek: cache hits"],
)  # fmt: skip
async def test_usage_in_each_one_s_own_meaning(
    wire: Wire, usage: dict[str, Any], expected: Usage
) -> None:
    reply = await read(wire, stream(delta("stop", content="x"), {"choices": [], "usage": usage}))
    assert reply.usage == expected


async def test_openrouter_says_what_it_charged(wire: Wire) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0012}
    charged = stream(delta("stop", content="x"), {"choices": [], "usage": usage})
    assert (await read(wire, charged, "openrouter")).cost_usd == Decimal("0.0012")
    own_key = {**usage, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.01}}
    byok = stream(delta("stop", content="x"), {"choices": [], "usage": own_key})
    assert (await read(wire, byok, "openrouter")).cost_usd == Decimal("0.0112")


async def test_reasoning_details_come_back_as_they_were(wire: Wire) -> None:
    def details(**fields: object) -> dict[str, Any]:
        return delta(reasoning_details=[fields])

    raw = stream(
        details(type="reasoning.text", index=0, text="Let me "),
        details(type="reasoning.text", index=0, text="think.", signature="sig"),
        details(type="reasoning.encrypted", index=1, data="gAAA"),
        delta("stop", content="ok"),
    )
    expected = [
        {"type": "reasoning.text", "index": 0, "text": "Let me think.", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "gAAA"},
    ]
    async with FakeProvider(raw, Say("ok")) as fake:
        provider = provider_at("openrouter", fake, wire)
        reply = await reply_of(provider)
        served = ModelRef(provider="openrouter", name="m")
        said = AssistantMessage(parts=reply.parts, served_by=served)
        await provider.complete(ask(*ask().messages, said), CallProgress())
    assert isinstance(reply.parts[0], Reasoning)
    assert fake.requests[1].body["messages"][-1]["reasoning_details"] == expected


async def test_gemini_s_signature_returns_with_its_call(wire: Wire) -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    first = call(index=0, id="a", name="read_file", arguments='{"path": "a"}')
    second = call(
        index=1, id="b", name="read_file", arguments='{"path": "b"}', extra_content=signature
    )
    async with FakeProvider(stream(first, second, delta("tool_calls")), Say("ok")) as fake:
        provider = provider_at("openai-compatible", fake, wire)
        reply = await reply_of(provider)
        served = ModelRef(provider="openai-compatible", name="m")
        said = AssistantMessage(parts=reply.parts, served_by=served)
        await provider.complete(ask(*ask().messages, said), CallProgress())
    made = fake.requests[1].body["messages"][2]["tool_calls"]
    assert ["extra_content" in c for c in made] == [False, True]
    assert made[1]["extra_content"] == signature


@pytest.mark.parametrize(
    ("raw", "failure"),
    [
        (stream(delta("error")), Failure.SERVER_ERROR),
        (stream(delta("stop", content="x"), done=False), Failure.STREAM_CUT),
        (stream(delta(content="x")), Failure.STREAM_CUT),
        (stream(delta("no such reason")), Failure.MALFORMED_REPLY),
        (stream({"error": {"code": 502, "message": "upstream"}}), Failure.SERVER_ERROR),
    ],
    ids=["error", "no [DONE]", "no finish reason", "unknown reason", "error chunk"],
)
async def test_ends_that_are_none(wire: Wire, raw: Raw, failure: Failure) -> None:
    with pytest.raises(ProviderError) as caught:
        await read(wire, raw, "openrouter")
    assert caught.value.failure is failure


async def test_comments_between_events_are_skipped(wire: Wire) -> None:
    body = stream(delta("stop", content="x")).body
    reply = await read(wire, Raw(b": OPENROUTER PROCESSING\n\n" * 3 + body), "openrouter")
    assert reply.parts == (Text(text="x"),)
