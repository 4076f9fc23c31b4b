"""OpenTelemetry and Prometheus for processes that work, set up from OpenTelemetry's own variables."""

import asyncio
import ipaddress
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from temporalio.client import Plugin
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    MetricBuffer,
    MetricBufferDurationFormat,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from io_harness.connection import Observed
from io_harness.sandbox.log import get_logger

from . import logs
from .exits import CommandFailed, Exit

_log = get_logger(__name__)

Signal = Literal["traces", "metrics"]
Exporter = Literal["otlp", "console"]

_BUFFERED = 100_000
"""Updates of the SDK's own metrics between two looks, a second apart."""
_FLUSH_SECONDS = 10
"""For what is left to send when the process ends."""
_PROTOCOL = "http/protobuf"


@dataclass(frozen=True)
class Wanted:
    """What is to be observed, and where it goes."""

    traces: Exporter | None
    metrics: Exporter | None
    scrape: tuple[str, int] | None
    """Address at which Prometheus may ask for metrics."""

    @property
    def anything(self) -> bool:
        return bool(self.traces or self.metrics or self.scrape)


def wanted(scrape: str | None) -> Wanted:
    """What OpenTelemetry's variables say, and the option.

    Raises:
        CommandFailed: USAGE; a value can't be used.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Wanted(None, None, _address(scrape))
    return Wanted(_exporter("traces"), _exporter("metrics"), _address(scrape))


def _exporter(signal: Signal) -> Exporter | None:
    """The exporter of a signal. Without a variable that asks for one there is none: by OpenTelemetry's
    default each process would try to reach a collector that most machines don't have."""
    upper = signal.upper()
    endpoint = _env("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT")
    named = _env(f"OTEL_{upper}_EXPORTER") or ("otlp" if endpoint else "none")
    match named:
        case "none":
            return None
        case "console":
            return "console"
        case "otlp":
            protocol = _env(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
            if protocol not in ("", _PROTOCOL):
                raise CommandFailed(
                    Exit.USAGE,
                    f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: only {_PROTOCOL} can be sent; most "
                    "collectors take it at port 4318",
                )
            return "otlp"
        case other:
            raise CommandFailed(
                Exit.USAGE, f"OTEL_{upper}_EXPORTER={other}: it may be otlp, console or none"
            )


def _env(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, ""))), "")


def _address(option: str | None) -> tuple[str, int] | None:
    """`[ADDRESS:]PORT`; without an address the loopback interface."""
    if option is None:
        return None
    host, _, port = option.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        return str(ipaddress.ip_address(host)), _port(port)
    except ValueError:
        raise CommandFailed(
            Exit.USAGE,
            f"--metrics {option}: give a port, or an IP address and a port like 127.0.0.1:9464",
        ) from None


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65_536:
        raise ValueError(text)
    return port


@asynccontextmanager
async def observed(scrape: str | None = None) -> AsyncIterator[Observed]:
    """Observe this process for as long as the block runs.

    Raises:
        CommandFailed: USAGE; what is wanted can't be had.
    """
    wants = wanted(scrape)
    if not wants.anything:
        yield Observed(runtime=_runtime(None))
        return
    try:
        from . import exporting
    except ImportError as error:
        raise CommandFailed(
            Exit.USAGE,
            f"traces and metrics need the extra io-harness[opentelemetry] ({error.name} is missing)",
        ) from None
    plugins: tuple[Plugin, ...] = ()
    closing: list[Callable[[], None]] = []
    if wants.traces:
        plugins, close = exporting.traces(wants.traces)
        closing.append(close)
    if wants.metrics is None and wants.scrape is None:
        try:
            yield Observed(plugins, _runtime(None))
        finally:
            await _close(closing)
        return
    buffer = MetricBuffer(_BUFFERED, MetricBufferDurationFormat.SECONDS)
    runtime = _runtime(buffer)
    provider, close = exporting.metrics(wants.metrics, wants.scrape)
    closing.append(close)
    try:
        async with exporting.sdk_metrics(buffer, provider):
            yield Observed(plugins, runtime)
    finally:
        await _close(closing)


@asynccontextmanager
async def observed_where_possible() -> AsyncIterator[Observed]:
    """For a person's command: variables that are set for other programs must not keep it from its
    work. What can't be had is logged."""
    async with AsyncExitStack() as stack:
        try:
            seen = await stack.enter_async_context(observed())
        except CommandFailed as error:
            _log.warning("not observed", error=str(error))
            seen = Observed(runtime=_runtime(None))
        yield seen


def _runtime(metrics: MetricBuffer | None) -> Runtime:
    """The SDK's native part, whose log lines become records like all others."""
    return Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(
                filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                forwarding=LogForwardingConfig(logger=logging.getLogger(logs.CORE)),
            ),
            metrics=metrics,
        )
    )


async def _close(closing: list[Callable[[], None]]) -> None:
    """Send what is left, and give up on a collector that doesn't take it."""

    async def close(one: Callable[[], None]) -> None:
        await asyncio.wait_for(asyncio.to_thread(one), _FLUSH_SECONDS)

    for found in await asyncio.gather(*map(close, closing), return_exceptions=True):
        if isinstance(found, Exception):
            _log.warning("not all telemetry was sent", error=repr(found))
