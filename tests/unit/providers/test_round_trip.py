"""A reply on the wire becomes the same parts, whatever API carries it."""

import pytest

from io_harness.activities.providers.wire import Wire
from io_harness.workflows.messages import MalformedToolCall, Reasoning, Text, ToolCall, UserMessage
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Say
from tests.unit.providers.conftest import ask, provider_at, reply_of

pytestmark = pytest.mark.usefixtures("key")

# Two code points of four bytes, a line separator that is no line end in SSE, and a CRLF.
AWKWARD = "naïve 🦀🦀 \u2028 done\r\n"


@pytest.mark.parametrize("write_bytes", [1, 7, 4096])
async def test_text_and_parallel_calls(api: str, wire: Wire, write_bytes: int) -> None:
    calls = (
        Call("read_file", {"path": "ä🦀.py"}, id="a"),
        Call("read_file", {"path": "b.py"}, id="b"),
    )
    said = Say(AWKWARD, calls, write_bytes=write_bytes)
    async with FakeProvider(said) as fake:
        reply = await reply_of(provider_at(api, fake, wire))
    assert reply.parts == (
        Text(text=AWKWARD),
        ToolCall(id="a", name="read_file", arguments={"path": "ä🦀.py"}),
        ToolCall(id="b", name="read_file", arguments={"path": "b.py"}),
    )
    assert reply.finish == "tool_use"


async def test_usage_falls_into_buckets_that_do_not_overlap(api: str, wire: Wire) -> None:
    used = Usage(input=100, cached=900, cache_write=50, output=40)
    async with FakeProvider(Say("ok", usage=used)) as fake:
        reply = await reply_of(provider_at(api, fake, wire))
    assert reply.usage == used


async def test_where_nothing_is_counted_usage_is_estimated_on_the_high_side(
    api: str, wire: Wire
) -> None:
    text = "word " * 200
    async with FakeProvider(Say(text, usage=Usage())) as fake:
        reply = await reply_of(
            provider_at(api, fake, wire), ask(UserMessage(origin="goal", text=text))
        )
    assert reply.usage.output > 200
    assert 200 < reply.usage.input < 2_000


@pytest.mark.parametrize(
    ("finish", "apis"),
    [
        ("stop", ("anthropic", "openai", "openai-responses")),
        ("length", ("anthropic", "openai", "openai-responses")),
        ("refusal", ("anthropic", "openai", "openai-responses")),
        ("content_filter", ("openai", "openai-responses")),
        ("paused", ("anthropic",)),
        ("context_overflow", ("anthropic",)),
    ],
)
async def test_finish_reasons(finish: FinishReason, apis: tuple[str, ...], wire: Wire) -> None:
    for api in apis:
        async with FakeProvider(Say("partial", finish=finish)) as fake:
            reply = await reply_of(provider_at(api, fake, wire))
        assert (api, reply.finish) == (api, finish)
        assert reply.parts == (Text(text="partial"),)


async def test_duplicate_ids_survive(api: str, wire: Wire) -> None:
    calls = (
        Call("read_file", {"path": "a"}, id="same"),
        Call("read_file", {"path": "b"}, id="same"),
    )
    async with FakeProvider(Say(calls=calls)) as fake:
        reply = await reply_of(provider_at(api, fake, wire))
    assert [p.arguments for p in reply.parts if isinstance(p, ToolCall)] == [
        {"path": "a"},
        {"path": "b"},
    ]


@pytest.mark.parametrize(
    "raw",
    [
        '{"path": "a',
        "[1, 2]",
        "7",
        "not json",
        '{"path": NaN}',
        '"text"',
        "null",
        '{"path": "\\ud83d"}',
        "[" * 5000,
    ],
)
async def test_arguments_that_are_no_object_are_malformed(api: str, wire: Wire, raw: str) -> None:
    async with FakeProvider(Say(calls=(Call("read_file", raw, id="c"),))) as fake:
        (part,) = (await reply_of(provider_at(api, fake, wire))).parts
    assert isinstance(part, MalformedToolCall)
    assert (part.id, part.name, part.raw) == ("c", "read_file", raw)
    assert "arguments" in part.error


async def test_no_arguments_at_all_are_an_empty_object(api: str, wire: Wire) -> None:
    async with FakeProvider(Say(calls=(Call("finish", "", id="c"),))) as fake:
        reply = await reply_of(provider_at(api, fake, wire))
    assert reply.parts == (ToolCall(id="c", name="finish", arguments={}),)


async def test_reasoning_is_kept_for_its_own_provider(api: str, wire: Wire) -> None:
    async with FakeProvider(Say("ok", thinking="Let me think about it.")) as fake:
        reply = await reply_of(provider_at(api, fake, wire))
    reasoning, text = reply.parts
    assert isinstance(reasoning, Reasoning)
    assert (reasoning.provider, reasoning.text) == (api, "Let me think about it.")
    assert text == Text(text="ok")


async def test_the_key_is_sent_in_the_header_only(api: str, wire: Wire, key: str) -> None:
    async with FakeProvider(Say("ok")) as fake:
        await reply_of(provider_at(api, fake, wire))
    (received,) = fake.requests
    sent = received.headers.get("x-api-key") or received.headers["authorization"]
    assert sent.removeprefix("Bearer ") == key
    assert key not in str(received.body)
