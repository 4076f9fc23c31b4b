"""What a provider says on failure becomes the right kind of failure."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.providers.base import Failure
from io_harness.activities.providers.failures import (
    MESSAGE_CHARS,
    from_error_body,
    from_response,
    readable,
    retry_after,
)

NO_HEADERS: dict[str, str] = {}


def _openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> bytes:
    import json

    return json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()


def _anthropic(kind: str, message: str) -> bytes:
    import json

    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


# Texts as the providers word them.
TABLE: list[tuple[str, int, bytes, Failure]] = [
    ("plain 400", 400, b"nope", Failure.BAD_REQUEST),
    ("plain 401", 401, b"", Failure.UNAUTHENTICATED),
    ("plain 402", 402, b"", Failure.QUOTA_EXHAUSTED),
    ("plain 403", 403, b"", Failure.FORBIDDEN),
    ("plain 404", 404, b"", Failure.NOT_FOUND),
    ("plain 408", 408, b"", Failure.TIMED_OUT),
    ("plain 409", 409, b"", Failure.SERVER_ERROR),
    ("plain 413", 413, b"", Failure.CONTEXT_TOO_LONG),
    ("plain 422", 422, b"", Failure.BAD_REQUEST),
    ("plain 429", 429, b"", Failure.RATE_LIMITED),
    ("plain 500", 500, b"<html>", Failure.SERVER_ERROR),
    ("plain 502", 502, b"", Failure.SERVER_ERROR),
    ("plain 503", 503, b"", Failure.OVERLOADED),
    ("plain 529", 529, b"", Failure.OVERLOADED),
    ("a redirect", 307, b"", Failure.BAD_REQUEST),
    ("an unknown 4xx", 418, b"", Failure.BAD_REQUEST),
    ("an unknown 5xx", 599, b"", Failure.SERVER_ERROR),
    (
        "Anthropic, prompt too long",
        400,
        _anthropic("invalid_request_error", "prompt is too long: 214315 tokens > 200000 maximum"),
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        "Anthropic, no credit",
        400,
        _anthropic(
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits.",
        ),
        Failure.QUOTA_EXHAUSTED,
    ),
    (
        "Anthropic, spend limit",
        400,
        _anthropic(
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on "
            "2026-12-01 at 00:00 UTC.",
        ),
        Failure.QUOTA_EXHAUSTED,
    ),
    (
        "Anthropic, rate limit",
        429,
        _anthropic(
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens "
            "per minute",
        ),
        Failure.RATE_LIMITED,
    ),
    ("Anthropic, overloaded", 529, _anthropic("overloaded_error", "x"), Failure.OVERLOADED),
    ("Anthropic, plain", 400, _anthropic("invalid_request_error", "x"), Failure.BAD_REQUEST),
    (
        "OpenAI, quota",
        429,
        _openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        Failure.QUOTA_EXHAUSTED,
    ),
    (
        "OpenAI, rate limit",
        429,
        _openai(
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000. "
            "Please try again in 1.2s.",
            "rate_limit_exceeded",
            "tokens",
        ),
        Failure.RATE_LIMITED,
    ),
    (
        "OpenAI, larger than the whole limit",
        429,
        _openai(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 52000. "
            "The input or output tokens must be reduced in order to run successfully.",
            "rate_limit_exceeded",
            "tokens",
        ),
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        "OpenAI, context",
        400,
        _openai("too long", "context_length_exceeded"),
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        "OpenAI, key",
        401,
        _openai("Incorrect API key provided: sk-abc***xyz.", "invalid_api_key"),
        Failure.UNAUTHENTICATED,
    ),
    ("OpenAI, model", 404, _openai("no such model", "model_not_found"), Failure.NOT_FOUND),
    ("OpenAI, filter", 400, _openai("flagged", "content_filter"), Failure.CONTENT_FILTERED),
    (
        "vLLM, context",
        400,
        b'{"object":"error","message":"This model\'s maximum context length is 8192 tokens. '
        b'However, you requested 9000 tokens.","type":"BadRequestError","code":400}',
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        "llama.cpp, context",
        400,
        b'{"error":{"code":400,"message":"the request exceeds the available context size",'
        b'"type":"exceed_context_size_error"}}',
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        "OpenRouter, no credit",
        402,
        b'{"error":{"code":402,"message":"This request requires more credits"}}',
        Failure.QUOTA_EXHAUSTED,
    ),
    (
        "OpenRouter, upstream rate limit",
        429,
        b'{"error":{"code":429,"message":"Provider returned error",'
        b'"metadata":{"raw":"model is temporarily rate-limited upstream"}}}',
        Failure.RATE_LIMITED,
    ),
    (
        "Gemini, in a list",
        429,
        b'[{"error":{"code":429,"message":"Resource has been exhausted","status":'
        b'"RESOURCE_EXHAUSTED"}}]',
        Failure.RATE_LIMITED,
    ),
    ("a generic code under a 500", 500, _openai("no"), Failure.SERVER_ERROR),
    ("an invalid code under 403", 403, _openai("no", None), Failure.FORBIDDEN),
]


@pytest.mark.parametrize(
    ("status", "body", "failure"), [r[1:] for r in TABLE], ids=[r[0] for r in TABLE]
)
def test_responses(status: int, body: bytes, failure: Failure) -> None:
    assert from_response(status, NO_HEADERS, body).failure is failure


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, Failure.OVERLOADED),
        ({"error": {"type": "api_error", "message": "x"}}, Failure.SERVER_ERROR),
        ({"error": {"code": 502, "message": "x"}}, Failure.SERVER_ERROR),
        ({"error": {"code": 429, "message": "x"}}, Failure.RATE_LIMITED),
        ({"error": {"code": "rate_limit_exceeded", "message": "x"}}, Failure.RATE_LIMITED),
        ({"error": "the model crashed"}, Failure.SERVER_ERROR),
        ({"code": "server_error", "message": "x"}, Failure.SERVER_ERROR),
        ({"code": "context_length_exceeded", "message": "x"}, Failure.CONTEXT_TOO_LONG),
        ({"code": "insufficient_quota", "message": "x"}, Failure.QUOTA_EXHAUSTED),
        (None, Failure.SERVER_ERROR),
    ],
)
def test_errors_inside_a_200(error: object, failure: Failure) -> None:
    assert from_error_body(error).failure is failure  # type: ignore[arg-type]


NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Monday, 30-Nov-26 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:59:00 GMT"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text())
def test_any_retry_after_is_read_or_ignored(value: str) -> None:
    seconds = retry_after({"retry-after": value}, NOW)
    assert seconds is None or seconds >= 0


def test_a_wait_is_taken_over_where_a_retry_makes_sense() -> None:
    waits = {"retry-after": "7"}
    assert from_response(429, waits, b"").retry_after == 7
    assert from_response(401, waits, b"").retry_after is None


def test_a_server_that_says_not_to_retry_is_believed() -> None:
    assert from_response(503, {"x-should-retry": "false"}, b"").retryable is False
    assert from_response(503, NO_HEADERS, b"").retryable is True
    assert from_response(400, {"x-should-retry": "true"}, b"").retryable is False


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-AbCdEf123456",
        "sk-proj-AbCdEf_123456",
        "AIzaSyA1234567890abcdefghijklmnop",
        "Bearer abcdef1234567890",
        "gsk_abcdefghij1234",
        "my-own-odd-key",
    ],
)
def test_error_texts_hold_no_secret(secret: str) -> None:
    body = _openai(f"Incorrect API key provided: {secret}.")
    told = str(from_response(401, NO_HEADERS, body, secrets=("my-own-odd-key",)))
    assert secret.removeprefix("Bearer ") not in told
    assert "Incorrect API key provided" in told


def test_long_texts_are_cut_and_say_so() -> None:
    told = readable("x" * 10_000)
    assert len(told) < MESSAGE_CHARS + 50
    assert told.endswith("(9500 more characters)")
