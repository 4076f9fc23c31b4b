"""A collector: it takes OTLP over HTTP on the loopback interface, and keeps what it got."""

import gzip
import http.server
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, Metric, NumberDataPoint
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Value = str | bool | int | float | list["Value"]
Point = NumberDataPoint | HistogramDataPoint


@dataclass
class Collector:
    address: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    exports: list[ExportMetricsServiceRequest] = field(default_factory=list)

    def named(self, prefix: str) -> list[Span]:
        """Without attempts that failed, which have spans of their own."""
        return [
            span
            for span in self.spans
            if span.name.startswith(prefix) and "error.type" not in attributes(span.attributes)
        ]

    def metrics(self) -> dict[str, Metric]:
        """Each metric as it was described last."""
        return {
            metric.name: metric
            for export in self.exports
            for resource in export.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def total(self, name: str) -> float:
        """Sum over all processes: each tells its own sum so far, and the last is the whole of it."""
        last: dict[tuple[str, ...], float] = {}
        for export in self.exports:
            for resource in export.resource_metrics:
                process = str(
                    attributes(resource.resource.attributes).get("service.instance.id", "")
                )
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        for point in points(metric) if metric.name == name else ():
                            labels = sorted(map(str, attributes(point.attributes).items()))
                            last[(process, *labels)] = value(point)
        return sum(last.values())

    def repeated(self) -> list[str]:
        """Names of spans that were sent more than once."""
        ids = Counter((span.trace_id, span.span_id, span.name) for span in self.spans)
        return [name for (_, _, name), times in ids.items() if times > 1]


def points(metric: Metric) -> list[Point]:
    kind = metric.WhichOneof("data")
    assert kind
    return list(getattr(metric, kind).data_points)


def value(point: Point) -> float:
    if isinstance(point, HistogramDataPoint):
        return point.sum
    return point.as_double if point.HasField("as_double") else point.as_int


def attributes(pairs: "Iterator[KeyValue] | object") -> dict[str, Value]:
    return {pair.key: plain(pair.value) for pair in pairs}  # type: ignore[attr-defined]


def plain(found: AnyValue) -> Value:
    kind = found.WhichOneof("value")
    assert kind
    if kind == "array_value":
        return [plain(each) for each in found.array_value.values]
    plain_value: Value = getattr(found, kind)
    return plain_value


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.bodies.append(body)
            if self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
            elif self.path == "/v1/metrics":
                collector.exports.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
