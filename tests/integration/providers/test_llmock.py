"""Judge: llmock, a server that breaks on purpose and grades how its client took it.

Its verdict fails a client that retries what can't be retried, storms, ignores Retry-After or accepts
a truncated stream; strict, also one that doesn't back off, gives up at once, or waits for ever.
"""

import pytest
from llmock.pytest_plugin import LLMock

from io_harness.workflows.result import Outcome
from tests.integration.providers.conftest import Begin, Run

APIS = ("openai", "anthropic", "openai-responses")


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _model(llmock: LLMock, api: str, **options: object) -> dict[str, object]:
    return {
        "provider": api,
        "name": "mock",
        "base_url": llmock.base_url("anthropic" if api == "anthropic" else "openai"),
        "api_key": "env:OPENAI_API_KEY",
        "options": {"idle_seconds": 2, **options},
    }


async def _finished(begin: Begin, llmock: LLMock, api: str) -> Run:
    llmock.call_tool("finish", {"summary": "done"}, times=None)
    run = await begin(_model(llmock, api))
    assert (await run.result()).outcome is Outcome.FINISHED
    llmock.assert_resilient(strict=True)
    return run


async def test_rate_limits_are_waited_out(begin: Begin, llmock: LLMock, api: str) -> None:
    llmock.rate_limit(times=2, retry_after=0.7)
    await _finished(begin, llmock, api)
    assert len(llmock.requests) == 3


async def test_outages_that_pass_are_backed_off_from(begin: Begin, llmock: LLMock) -> None:
    llmock.fail(503, times=3)
    await _finished(begin, llmock, "openai")
    assert len(llmock.requests) == 4


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt", "stall"])
async def test_broken_streams_are_asked_for_again(
    begin: Begin, llmock: LLMock, api: str, fault: str
) -> None:
    # Slow enough that the server still writes when the client hangs up: it takes a stream that it
    # wrote to the end for one that was read to the end.
    llmock.pace(300)
    getattr(llmock, fault)(after_chunks=2)
    await _finished(begin, llmock, api)
    assert len(llmock.requests) == 2
    assert llmock.requests[0].fault is not None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_cannot_be_cured_is_asked_once(
    begin: Begin, llmock: LLMock, status: int
) -> None:
    llmock.fail(status, times=None)
    result = await (await begin(_model(llmock, "openai"))).result()
    assert result.outcome is Outcome.ESCALATED
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


async def test_an_outage_that_stays_is_no_storm(begin: Begin, llmock: LLMock) -> None:
    llmock.outage()
    result = await (await begin(_model(llmock, "anthropic"))).result()
    assert (result.outcome, result.code) == (Outcome.ESCALATED, "Overloaded")
    assert len(llmock.requests) == 6
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
async def test_broken_tool_calls_are_told_to_the_model(
    begin: Begin, llmock: LLMock, api: str, kind: str
) -> None:
    llmock.break_tool_call(kind)
    await _finished(begin, llmock, api)
    assert len(llmock.requests) == 2
    assert "not executed" in str(llmock.requests[1].body)


async def test_the_judge_finds_faults(llmock: LLMock) -> None:
    """Control: a client that takes a truncated stream for whole is found out."""
    import httpx

    llmock.truncate(after_chunks=2)
    async with httpx.AsyncClient() as client:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        await client.post(llmock.base_url("openai") + "/chat/completions", json=body)
    with pytest.raises(AssertionError, match="truncated_stream_accepted"):
        llmock.assert_resilient()
