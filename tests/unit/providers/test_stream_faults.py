"""A stream that doesn't end well is a failure of the right kind, and never a reply."""

import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from io_harness.activities.providers.base import CallProgress, Failure, ProviderError
from io_harness.activities.providers.wire import Wire
from io_harness.workflows.contract import ModelOptions
from io_harness.workflows.result import Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Answer, Call, Cut, Fail, Hang, Raw, Say
from tests.unit.providers.conftest import ask, provider_at

pytestmark = pytest.mark.usefixtures("key")

WHOLE = Say("text", (Call("read_file", {"path": "a"}),))


async def fail(api: str, wire: Wire, answer: Answer, idle: int = 5) -> ProviderError:
    async with FakeProvider(answer) as fake:
        request = ask(options=ModelOptions(idle_seconds=idle))
        with pytest.raises(ProviderError) as caught:
            await provider_at(api, fake, wire).complete(request, CallProgress())
        assert len(fake.requests) == 1, "the HTTP client must not retry"
    return caught.value


async def test_the_whole_stream_is_accepted(api: str, wire: Wire) -> None:
    """Control for the cuts below."""
    async with FakeProvider(WHOLE) as fake:
        await provider_at(api, fake, wire).complete(ask(), CallProgress())


async def test_a_stream_without_its_end_marker_is_cut_wherever_it_ends(
    api: str, wire: Wire
) -> None:
    from tests.fakes.wires import events

    path = {"anthropic": "/messages", "openai-responses": "/responses"}.get(
        api, "/chat/completions"
    )
    for after in range(len(list(events(path, WHOLE)))):
        said = Say(WHOLE.text, WHOLE.calls, cut=Cut(after, "close"))
        assert (await fail(api, wire, said)).failure is Failure.STREAM_CUT, after


async def test_a_broken_connection(api: str, wire: Wire) -> None:
    error = await fail(api, wire, Say("text", cut=Cut(2, "reset")))
    assert error.failure is Failure.CONNECTION_LOST
    assert error.retryable


async def test_a_connection_broken_before_any_answer(api: str, wire: Wire) -> None:
    assert (await fail(api, wire, Hang())).failure is Failure.CONNECTION_LOST


async def test_nobody_listens(api: str, wire: Wire) -> None:
    async with FakeProvider() as fake:
        provider, url = provider_at(api, fake, wire), fake.url
    with pytest.raises(ProviderError) as caught:
        await provider.complete(ask(), CallProgress())
    assert caught.value.failure is Failure.CONNECTION_LOST
    assert f"model.base_url: {url} can't be reached" in str(caught.value)


async def test_silence_in_mid_stream(api: str, wire: Wire) -> None:
    before = time.monotonic()
    error = await fail(api, wire, Say("text", cut=Cut(2, "stall")), idle=1)
    assert error.failure is Failure.TIMED_OUT
    assert "silent for 1 s" in str(error)
    assert time.monotonic() - before < 30


@pytest.mark.parametrize(
    ("code", "failure"),
    [("overloaded", Failure.OVERLOADED), ("rate_limit", Failure.RATE_LIMITED)],
)
async def test_an_error_in_mid_stream_by_its_code(
    api: str, wire: Wire, code: str, failure: Failure
) -> None:
    named = {"overloaded": "slow_down", "rate_limit": "rate_limit_exceeded"}[code]
    said = Say("text", cut=Cut(2, "error", error=code if api == "anthropic" else named))
    error = await fail(api, wire, said)
    assert error.failure is failure
    assert "in mid-stream" in str(error)


async def test_an_event_that_is_not_json(api: str, wire: Wire) -> None:
    error = await fail(api, wire, Say("text", cut=Cut(2, "garbage")))
    assert error.failure is Failure.MALFORMED_REPLY


async def test_counts_below_nothing(api: str, wire: Wire) -> None:
    """They would give a run more budget with each call."""
    error = await fail(api, wire, Say("text", usage=Usage(input=-1_000, output=10)))
    assert error.failure is Failure.MALFORMED_REPLY


async def test_an_error_inside_a_200_body(api: str, wire: Wire) -> None:
    body = b'{"error": {"code": 429, "message": "slow down", "type": "rate_limit_error"}}'
    error = await fail(api, wire, Raw(body, "application/json"))
    assert error.failure is Failure.RATE_LIMITED


@pytest.mark.parametrize("body", [b"<html>welcome to the hotel wifi</html>", b"", b"[]", b"{}"])
async def test_a_200_that_is_no_stream(api: str, wire: Wire, body: bytes) -> None:
    error = await fail(api, wire, Raw(body, "text/html"))
    assert error.failure is Failure.MALFORMED_REPLY


async def test_an_empty_stream(api: str, wire: Wire) -> None:
    assert (await fail(api, wire, Raw(b""))).failure is Failure.STREAM_CUT


async def test_a_redirect_is_not_followed(api: str, wire: Wire) -> None:
    """It could carry the key elsewhere."""
    async with FakeProvider(Say("stolen")) as other:
        moved = Fail(307, headers={"location": other.url + "/v1/messages"})
        error = await fail(api, wire, moved)
        assert other.requests == []
    assert not error.retryable


async def test_an_error_that_echoes_the_key(api: str, wire: Wire, key: str) -> None:
    error = await fail(api, wire, Fail(401, message=f"bad key {key} given"))
    assert error.failure is Failure.UNAUTHENTICATED
    assert key not in str(error)


async def test_a_reply_without_end_is_stopped(
    api: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("io_harness.activities.providers.wire.REPLY_BYTES", 10_000)
    error = await fail(api, wire, Raw(b": comment\n" * 5_000))
    assert error.failure is Failure.REPLY_TOO_LARGE


async def test_what_a_cut_stream_used_is_known(wire: Wire) -> None:
    progress = CallProgress()
    async with FakeProvider(Say("text", cut=Cut(4, "close"))) as fake:
        with pytest.raises(ProviderError):
            await provider_at("anthropic", fake, wire).complete(ask(), progress)
    assert (progress.usage.input, progress.usage.output) == (100, 1)
    assert progress.received_bytes > 0


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """A certificate that nobody signed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
         certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_a_certificate_that_does_not_verify(wire: Wire, untrusted: ssl.SSLContext) -> None:
    async with FakeProvider(Say("ok"), tls=untrusted) as fake:
        with pytest.raises(ProviderError) as caught:
            await provider_at("openai", fake, wire).complete(ask(), CallProgress())
        assert fake.requests == []
    assert caught.value.failure is Failure.UNTRUSTED_SERVER
    assert not caught.value.retryable
