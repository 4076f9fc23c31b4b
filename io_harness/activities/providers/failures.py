"""From what a provider said to why it failed."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pydantic import JsonValue

from .base import Failure, ProviderError

MESSAGE_CHARS = 500
"""Longer error texts are cut."""

_BY_STATUS: Mapping[int, Failure] = {
    400: Failure.BAD_REQUEST,
    401: Failure.UNAUTHENTICATED,
    402: Failure.QUOTA_EXHAUSTED,
    403: Failure.FORBIDDEN,
    404: Failure.NOT_FOUND,
    408: Failure.TIMED_OUT,
    409: Failure.SERVER_ERROR,
    413: Failure.CONTEXT_TOO_LONG,
    422: Failure.BAD_REQUEST,
    429: Failure.RATE_LIMITED,
    503: Failure.OVERLOADED,
    504: Failure.TIMED_OUT,
    529: Failure.OVERLOADED,
}

_BY_CODE: Mapping[str, Failure] = {
    # Anthropic
    "invalid_request_error": Failure.BAD_REQUEST,
    "authentication_error": Failure.UNAUTHENTICATED,
    "billing_error": Failure.QUOTA_EXHAUSTED,
    "permission_error": Failure.FORBIDDEN,
    "not_found_error": Failure.NOT_FOUND,
    "request_too_large": Failure.CONTEXT_TOO_LONG,
    "rate_limit_error": Failure.RATE_LIMITED,
    "api_error": Failure.SERVER_ERROR,
    "timeout_error": Failure.TIMED_OUT,
    "overloaded_error": Failure.OVERLOADED,
    # OpenAI and servers that speak like it
    "invalid_api_key": Failure.UNAUTHENTICATED,
    "model_not_found": Failure.NOT_FOUND,
    "insufficient_quota": Failure.QUOTA_EXHAUSTED,
    "billing_hard_limit_reached": Failure.QUOTA_EXHAUSTED,
    "billing_not_active": Failure.QUOTA_EXHAUSTED,
    "access_terminated": Failure.FORBIDDEN,
    "rate_limit_exceeded": Failure.RATE_LIMITED,
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
    "exceed_context_size_error": Failure.CONTEXT_TOO_LONG,  # llama.cpp
    "string_above_max_length": Failure.CONTEXT_TOO_LONG,
    "content_filter": Failure.CONTENT_FILTERED,
    "content_policy_violation": Failure.CONTENT_FILTERED,
    "invalid_prompt": Failure.BAD_REQUEST,
    "server_error": Failure.SERVER_ERROR,
    "internal_server_error": Failure.SERVER_ERROR,
    "service_unavailable": Failure.OVERLOADED,
    "slow_down": Failure.OVERLOADED,
    "timeout": Failure.TIMED_OUT,
}

# Some failures have no code of their own: the text tells them from their neighbours.
_BY_TEXT: tuple[tuple[re.Pattern[str], Failure], ...] = (
    (
        re.compile(
            r"prompt is too long|context (length|window|limit|size)|maximum context"
            r"|too many (input )?tokens|exceeds? the (available )?context|reduce the length"
            r"|input or output tokens must be reduced|request too large",
            re.I,
        ),
        Failure.CONTEXT_TOO_LONG,
    ),
    (
        re.compile(
            r"credit balance|insufficient (credit|balance|fund|quota)|exceeded your current quota"
            r"|requires more credits|usage limits?\. you will regain|spend(ing)? (limit|cap)"
            r"|billing (hard )?limit|key limit exceeded|payment required",
            re.I,
        ),
        Failure.QUOTA_EXHAUSTED,
    ),
)
_TEXT_REFINES = frozenset(
    {Failure.BAD_REQUEST, Failure.FORBIDDEN, Failure.RATE_LIMITED, Failure.SERVER_ERROR}
)

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|hf|AIza)[-_][A-Za-z0-9*_.\-]{6,}|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/=\-]{8,}"
)


def readable(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` on one line, without secrets, cut to `MESSAGE_CHARS`."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[secret]")
    text = " ".join(_SECRET.sub("[secret]", text).split())
    if len(text) <= MESSAGE_CHARS:
        return text
    return f"{text[:MESSAGE_CHARS]}... ({len(text) - MESSAGE_CHARS} more characters)"


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, secrets: Iterable[str] = ()
) -> ProviderError:
    """Why a response with an error status failed."""
    codes, text = _read_error(_parsed(body))
    text = text or body.decode("utf-8", "replace")
    failure = _classify(status, codes, text)
    asked = headers.get("x-should-retry")
    return ProviderError(
        failure,
        f"HTTP {status}: {readable(text, secrets) or 'no text'}",
        retry_after=retry_after(headers) if failure.retryable else None,
        retryable=False if asked == "false" else None,
    )


def from_error_body(error: JsonValue, *, secrets: Iterable[str] = ()) -> ProviderError:
    """Why a call failed that said so inside a 200 response or in mid-stream."""
    codes, text = _read_error(error)
    status = next((int(c) for c in codes if c.isdigit() and 400 <= int(c) < 600), None)
    failure = _classify(status, codes, text)
    label = next((c for c in codes), "error")
    return ProviderError(failure, f"{label}: {readable(text, secrets) or 'no text'}")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait: `retry-after-ms`, or `Retry-After` as seconds (a fraction too) or as an HTTP
    date (RFC 9110, section 10.2.3). None where there is neither, or it can't be read."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _seconds_until(value, now or datetime.now(UTC))
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _seconds_until(value: str, now: datetime) -> float:
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return math.nan
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


def _parsed(body: bytes) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(body)
    except ValueError:
        return None
    return parsed


def _read_error(error: JsonValue) -> tuple[tuple[str, ...], str]:
    """The codes (most telling first) and the text of `{"error": {...}}` or of what is inside it."""
    if isinstance(error, list) and error:  # Gemini wraps it in a list
        return _read_error(error[0])
    if isinstance(error, str):
        return (), error
    if not isinstance(error, dict):
        return (), ""
    inner = error.get("error")
    if isinstance(inner, dict | str | list):
        return _read_error(inner)
    codes = tuple(
        str(value)
        for value in (error.get("code"), error.get("type"), error.get("status"))
        if isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    )
    message = error.get("message") or error.get("detail") or ""
    text = message if isinstance(message, str) else json.dumps(message)
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        text = f"{text}: {metadata['raw']}"  # OpenRouter passes on what its provider said
    return codes, text


def _classify(status: int | None, codes: Iterable[str], text: str) -> Failure:
    """By code, as it says more than the status; but a code that says no more than "bad request"
    gives way to the status, and some kinds are told apart by the text alone."""
    failure = next((_BY_CODE[code] for code in codes if code in _BY_CODE), None)
    if failure is None or (failure is Failure.BAD_REQUEST and status is not None):
        failure = _by_status(status)
    if failure in _TEXT_REFINES:
        for pattern, refined in _BY_TEXT:
            if pattern.search(text):
                return refined
    return failure


def _by_status(status: int | None) -> Failure:
    if status is None or status >= 500:
        return _BY_STATUS.get(status or 500, Failure.SERVER_ERROR)
    return _BY_STATUS.get(status, Failure.BAD_REQUEST)
