"""The OpenTelemetry SDK of this process. Needs the extra `io-harness[opentelemetry]`."""

import os
import sys
from collections.abc import Callable
from typing import Literal

import opentelemetry.metrics
import opentelemetry.trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from prometheus_client import start_http_server
from temporalio.client import Plugin
from temporalio.contrib.opentelemetry import (
    MetricsExporter,
    OpenTelemetryPlugin,
    create_tracer_provider,
)
from temporalio.runtime import MetricBuffer

from io_harness import __version__
from io_harness.telemetry import TelemetryPlugin

from .exits import CommandFailed, Exit

_SDK = "temporalio"
"""Meter of the SDK's own metrics."""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)

Close = Callable[[], None]


def traces(exporter: Literal["otlp", "console"]) -> tuple[tuple[Plugin, ...], Close]:
    """The plugins of a client whose runs are traced, and what sends the rest."""
    provider = create_tracer_provider(resource=_resource(), shutdown_on_exit=False)
    chosen = OTLPSpanExporter() if exporter == "otlp" else ConsoleSpanExporter(out=sys.stderr)
    provider.add_span_processor(BatchSpanProcessor(chosen))
    opentelemetry.trace.set_tracer_provider(provider)
    return (OpenTelemetryPlugin(), TelemetryPlugin()), provider.shutdown


def metrics(
    exporter: Literal["otlp", "console"] | None, scrape: tuple[str, int] | None
) -> tuple[MeterProvider, Close]:
    """A provider that sends metrics, lets them be scraped, or both.

    Raises:
        CommandFailed: USAGE; the address to be scraped at can't be had.
    """
    readers: list[MetricReader] = []
    stop: Close = _nothing
    if exporter is not None:
        chosen = (
            OTLPMetricExporter() if exporter == "otlp" else ConsoleMetricExporter(out=sys.stderr)
        )
        readers.append(PeriodicExportingMetricReader(chosen))
    if scrape is not None:
        stop = _serve(*scrape)
        readers.append(PrometheusMetricReader(scope_info_enabled=False))
    provider = MeterProvider(
        metric_readers=readers,
        resource=_resource(),
        shutdown_on_exit=False,
        views=[
            View(
                meter_name=_SDK,
                instrument_type=Histogram,
                aggregation=ExplicitBucketHistogramAggregation(_SECONDS),
            )
        ],
    )
    opentelemetry.metrics.set_meter_provider(provider)

    def close() -> None:
        provider.shutdown()
        stop()

    return provider, close


def sdk_metrics(buffer: MetricBuffer, provider: MeterProvider) -> MetricsExporter:
    """Brings the SDK's own metrics to the provider."""
    return MetricsExporter(buffer, provider, meter_name=_SDK)


def _serve(host: str, port: int) -> Close:
    try:
        server, thread = start_http_server(port, host)
    except OSError as error:
        raise CommandFailed(
            Exit.USAGE, f"--metrics {host}:{port} can't be had: {error.strerror}"
        ) from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


def _nothing() -> None:
    """There is no server to stop."""


def _resource() -> Resource:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before our own name."""
    ours = {"service.version": __version__}
    named = os.environ.get("OTEL_SERVICE_NAME")
    if not named and "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        ours["service.name"] = "io-harness"
    return Resource.create(ours)
