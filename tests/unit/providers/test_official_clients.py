"""Judge: the official SDKs read the fake server, and read the same as our providers.

So a fake that spoke its protocol wrongly would be found out, and with it any provider that was
written to fit the fake.
"""

import json
from typing import Any

import anthropic
import openai
import pytest

from io_harness.activities.providers.wire import Wire
from io_harness.workflows.messages import Text, ToolCall
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Fail, Say
from tests.unit.providers.conftest import provider_at, reply_of

pytestmark = pytest.mark.usefixtures("key")

SAID = Say(
    "naïve 🦀 \u2028 done",
    (
        Call("read_file", {"path": "ä.py"}, id="call_a"),
        Call("read_file", {"path": "b.py"}, id="call_b"),
    ),
    usage=Usage(input=100, cached=900, output=40),
    write_bytes=5,
)
Seen = tuple[str, list[tuple[str, str, Any]], int, int]
"""Text, calls, input tokens (cached included) and output tokens."""


async def _with_anthropic(fake: FakeProvider) -> Seen:
    async with (
        anthropic.AsyncAnthropic(base_url=fake.url, api_key="k", max_retries=0) as client,
        client.messages.stream(
            model="fake", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]
    usage = message.usage
    return (
        text,
        calls,
        usage.input_tokens + (usage.cache_read_input_tokens or 0),
        usage.output_tokens,
    )


async def _with_chat(fake: FakeProvider) -> Seen:
    async with (
        openai.AsyncOpenAI(base_url=fake.url + "/v1", api_key="k", max_retries=0) as client,
        client.chat.completions.stream(
            model="fake",
            messages=[{"role": "user", "content": "hi"}],
            stream_options={"include_usage": True},
        ) as stream,
    ):
        completion = await stream.get_final_completion()
    message = completion.choices[0].message
    calls: list[tuple[str, str, Any]] = [
        (c.id, c.function.name, json.loads(c.function.arguments))
        for c in message.tool_calls or ()
        if c.type == "function"
    ]
    assert completion.usage is not None
    return (
        message.content or "",
        calls,
        completion.usage.prompt_tokens,
        completion.usage.completion_tokens,
    )


async def _with_responses(fake: FakeProvider) -> Seen:
    async with (
        openai.AsyncOpenAI(base_url=fake.url + "/v1", api_key="k", max_retries=0) as client,
        client.responses.stream(model="fake", input="hi") as stream,
    ):
        response = await stream.get_final_response()
    calls: list[tuple[str, str, Any]] = [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]
    assert response.usage is not None
    return response.output_text, calls, response.usage.input_tokens, response.usage.output_tokens


CLIENTS = {
    "anthropic": _with_anthropic,
    "openai": _with_chat,
    "openai-responses": _with_responses,
}


@pytest.mark.parametrize("api", CLIENTS)
async def test_the_official_client_and_ours_read_the_same(api: str, wire: Wire) -> None:
    async with FakeProvider(SAID, SAID) as fake:
        seen = await CLIENTS[api](fake)
        reply = await reply_of(provider_at(api, fake, wire))
    ours: Seen = (
        "".join(p.text for p in reply.parts if isinstance(p, Text)),
        [(p.id, p.name, p.arguments) for p in reply.parts if isinstance(p, ToolCall)],
        reply.usage.input + reply.usage.cached,
        reply.usage.output,
    )
    assert seen == ours
    assert seen[0] == SAID.text


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("api", CLIENTS)
async def test_the_official_client_takes_the_fakes_ends(api: str, finish: FinishReason) -> None:
    async with FakeProvider(Say("x", finish=finish)) as fake:
        try:
            assert (await CLIENTS[api](fake))[0] == "x"
        except (openai.LengthFinishReasonError, RuntimeError):
            # How those clients' helpers tell a reply that was cut at its limit.
            assert finish == "length"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "AuthenticationError"), (429, "RateLimitError"), (500, "InternalServerError")],
)
@pytest.mark.parametrize("api", CLIENTS)
async def test_the_official_client_reads_the_fakes_errors(api: str, status: int, kind: str) -> None:
    async with FakeProvider(Fail(status, message="told by the fake")) as fake:
        with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as caught:
            await CLIENTS[api](fake)
    assert type(caught.value).__name__ == kind
    assert "told by the fake" in str(caught.value)
