"""What a run does when its provider fails: retries by Temporal alone, fallback, or a clear end."""

import asyncio
import time

from io_harness.workflows.result import Outcome, Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Cut, Fail, Say
from tests.integration.providers.conftest import FINISH, Begin, model_of


async def test_failures_that_pass_are_retried(begin: Begin) -> None:
    async with FakeProvider(Fail(529), Say("x", cut=Cut(2, "reset")), FINISH) as fake:
        run = await begin(model_of(fake))
        result = await run.result()
    assert result.outcome is Outcome.FINISHED
    assert len(fake.requests) == 3
    assert await run.model_calls() == 1
    assert [r.body for r in fake.requests] == [fake.requests[0].body] * 3


async def test_retry_after_is_waited_for(begin: Begin) -> None:
    async with FakeProvider(Fail(429, headers={"retry-after": "2.5"}), FINISH) as fake:
        result = await (await begin(model_of(fake))).result()
    assert result.outcome is Outcome.FINISHED
    first, second = (r.at for r in fake.requests)
    assert second - first >= 2.5


async def test_without_retry_after_waits_grow(begin: Begin) -> None:
    async with FakeProvider(Fail(500), Fail(500), FINISH) as fake:
        assert (await (await begin(model_of(fake))).result()).outcome is Outcome.FINISHED
    first, second, third = (r.at for r in fake.requests)
    assert second - first >= 1
    assert third - second >= 2


async def test_what_cannot_be_cured_is_not_retried(begin: Begin) -> None:
    for status, code in ((400, "BadRequest"), (401, "Unauthenticated"), (404, "NotFound")):
        async with FakeProvider(Fail(status, message="no, really")) as fake:
            result = await (await begin(model_of(fake))).result()
        assert (result.outcome, result.code) == (Outcome.ESCALATED, code)
        assert "no, really" in result.reason
        assert len(fake.requests) == 1


async def test_a_fallback_takes_over_and_is_named(begin: Begin) -> None:
    async with FakeProvider(Fail(401)) as first, FakeProvider(FINISH) as second:
        run = await begin(model_of(first), model_of(second, "anthropic", name="other"))
        result = await run.result()
    assert result.outcome is Outcome.FINISHED
    assert [(m.provider, m.name) for m in result.models] == [("anthropic", "other")]


async def test_a_long_wait_is_not_waited_for_where_there_is_a_fallback(begin: Begin) -> None:
    limited = Fail(429, headers={"retry-after": "3600"})
    async with FakeProvider(limited) as first, FakeProvider(FINISH) as second:
        before = time.monotonic()
        result = await (await begin(model_of(first), model_of(second))).result()
    assert result.outcome is Outcome.FINISHED
    assert time.monotonic() - before < 60


async def test_a_wait_beyond_the_time_budget_ends_the_run_now(begin: Begin) -> None:
    async with FakeProvider(Fail(429, headers={"retry-after": "3600"})) as fake:
        before = time.monotonic()
        run = await begin(model_of(fake), budget={"working_seconds": 600})
        result = await run.result()
    assert result.outcome is Outcome.TIME_BUDGET_EXCEEDED
    assert time.monotonic() - before < 60
    assert len(fake.requests) == 1


async def test_an_empty_reply_is_retried_once(begin: Begin) -> None:
    async with FakeProvider(Say(), FINISH) as fake:
        assert (await (await begin(model_of(fake))).result()).outcome is Outcome.FINISHED
    async with FakeProvider(Say(), Say(), FINISH) as fake:
        result = await (await begin(model_of(fake))).result()
    assert (result.outcome, result.code) == (Outcome.ESCALATED, "EmptyReply")
    assert len(fake.requests) == 2


async def test_every_attempt_s_known_usage_is_counted(begin: Begin) -> None:
    """Two attempts end without a reply, one after the provider counted its input."""
    empty = Say(usage=Usage(input=1000, output=10))
    async with FakeProvider(empty, Fail(529), FINISH) as fake:
        result = await (await begin(model_of(fake))).result()
    assert result.spend.usage.total == 1010 + FINISH.usage.total
    assert float(result.spend.usd) == (1000 + 2 * 10 + 100 + 2 * 20) / 1e6


async def test_the_usage_of_a_call_that_fails_for_good_is_counted(begin: Begin) -> None:
    cut = Say("text", cut=Cut(3, "close"))
    async with FakeProvider(cut, Fail(401)) as fake:
        result = await (await begin(model_of(fake, "anthropic"))).result()
    assert result.outcome is Outcome.ESCALATED
    assert result.spend.usage == Usage(input=100, output=1)


async def test_attempts_that_fail_do_not_pass_the_budget(begin: Begin) -> None:
    """The provider counts its input, and then cuts the stream, again and again."""
    cut = Say("text", cut=Cut(3, "close"), usage=Usage(input=25_000))
    async with FakeProvider(cut, cut, cut, FINISH) as fake:
        run = await begin(model_of(fake, "anthropic"), budget={"tokens": 52_000})
        result = await run.result()
    assert result.outcome is Outcome.TOKEN_BUDGET_EXCEEDED
    assert result.spend.usage.input == 25_000 * len(fake.requests) == 50_000


async def test_what_a_call_used_that_the_time_budget_ends_is_counted(begin: Begin) -> None:
    stalled = Say("text", cut=Cut(3, "stall", seconds=120))
    async with FakeProvider(stalled) as fake:
        run = await begin(model_of(fake, "anthropic"), budget={"working_seconds": 6})
        result = await run.result()
    assert result.outcome is Outcome.TIME_BUDGET_EXCEEDED
    assert result.spend.usage.input == 100


async def test_the_key_is_nowhere_in_history(begin: Begin) -> None:
    key = "sk-test-key-of-the-fake"
    async with FakeProvider(Fail(401, message=f"wrong key {key}")) as fake:
        run = await begin(model_of(fake))
        await run.result()
        history = await run.handle.fetch_history()
    assert fake.requests[0].headers["authorization"] == f"Bearer {key}"
    stored = b"".join(event.SerializeToString() for event in history.events)
    assert b"wrong key [secret]" in stored
    assert key.encode() not in stored


async def test_a_cancelled_run_hangs_up(begin: Begin) -> None:
    async with FakeProvider(Say("text", cut=Cut(2, "stall", seconds=120))) as fake:
        run = await begin(model_of(fake))
        while not fake.requests:
            await asyncio.sleep(0.1)
        before = time.monotonic()
        await run.handle.cancel()
        result = await run.result()
        while not fake.abandoned:
            await asyncio.sleep(0.1)
    assert result.outcome is Outcome.CANCELLED
    assert time.monotonic() - before < 30


async def test_a_call_that_takes_too_long_in_all_is_ended_though_bytes_keep_coming(
    begin: Begin,
) -> None:
    slow = Say("x" * 3000, write_bytes=20, pause=0.05)
    async with FakeProvider(slow, FINISH) as fake:
        result = await (await begin(model_of(fake, options={"seconds": 1}))).result()
    assert result.outcome is Outcome.FINISHED
    assert len(fake.requests) == 2


async def test_three_malformed_replies_in_a_row_end_the_run(begin: Begin) -> None:
    garbage = Say(calls=(Call("no_such_tool", {}),))
    cut = Say(calls=(Call("read_file", '{"path": "a'),))
    limit = Say(calls=(Call("read_file", {"path": "a.txt"}),), finish="length")
    async with FakeProvider(garbage, cut, limit, FINISH) as fake:
        result = await (await begin(model_of(fake))).result()
    assert (result.outcome, result.code) == (Outcome.ESCALATED, "MalformedReplies")
    told = [m["content"] for m in fake.requests[2].body["messages"] if m["role"] == "tool"]
    assert "there is no tool of this name" in told[0]
    assert "the arguments are not valid JSON" in told[1]


async def test_a_malformed_reply_is_told_and_the_run_goes_on(begin: Begin) -> None:
    cut = Say(calls=(Call("read_file", '{"path": "a'),))
    read = Say(calls=(Call("read_file", {"path": "a.txt"}),))
    async with FakeProvider(cut, read, FINISH) as fake:
        assert (await (await begin(model_of(fake))).result()).outcome is Outcome.FINISHED
    told = [m["content"] for m in fake.requests[2].body["messages"] if m["role"] == "tool"]
    assert told[0].startswith("Error: not executed")
    assert "hello" in told[1]
