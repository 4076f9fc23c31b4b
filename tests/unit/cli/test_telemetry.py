"""What OpenTelemetry's variables and the option ask for."""

import pytest

from io_harness.cli.exits import CommandFailed
from io_harness.cli.telemetry import Wanted, observed, observed_where_possible, wanted


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def test_nothing_is_sent_unasked() -> None:
    assert wanted(None) == Wanted(None, None, None)
    assert not wanted(None).anything


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "otlp", "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, "otlp", None),
        ({"OTEL_METRICS_EXPORTER": "console"}, None, "console"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"},
            "otlp",
            None,
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, None, None),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            "otlp",
            None,
        ),
    ],
)
def test_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], traces: str, metrics: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wanted(None) == Wanted(traces, metrics, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin: it may be otlp"),
        ({"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_what_can_not_be_sent_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CommandFailed, match=message):
        wanted(None)


@pytest.mark.parametrize(
    ("option", "address"),
    [("9464", ("127.0.0.1", 9464)), (":9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464)),
     ("0.0.0.0:9464", ("0.0.0.0", 9464))],
)  # fmt: skip
def test_addresses(option: str, address: tuple[str, int]) -> None:
    assert wanted(option).scrape == address


@pytest.mark.parametrize("option", ["", "x", "0", "70000", "host:9464", "1.2.3.4:"])
def test_no_address(option: str) -> None:
    with pytest.raises(CommandFailed, match=r"give a port, or an IP address and a port"):
        wanted(option)


async def test_a_persons_command_goes_on_where_a_service_would_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(CommandFailed, match="zipkin"):
        async with observed():
            pass
    async with observed_where_possible() as seen:
        assert seen.plugins == ()
    assert "not observed" in caplog.text
