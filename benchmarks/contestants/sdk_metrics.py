"""What Temporal's SDK measures of its worker by itself, read from its Prometheus endpoint."""

import asyncio
import functools
import socket
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from .task import SdkMetrics

_EVERY_SECONDS = 2.0
Values = dict[tuple[str, str], float]
"""By name and kind of worker, those of different task queues and types added up."""


@dataclass
class Endpoint:
    runtime: Runtime
    """For the client; a worker has its client's."""
    url: str
    _slots_used: int = field(default=0, init=False)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Keep an eye on the slots in use while the body runs."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(_EVERY_SECONDS)
                used = (await self._read())["temporal_worker_task_slots_used", "ActivityWorker"]
                self._slots_used = max(self._slots_used, int(used))

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait({watching})

    async def metrics(self) -> SdkMetrics:
        now = await self._read()

        def mean(name: str) -> float:
            return now[f"{name}_sum", ""] / max(now[f"{name}_count", ""], 1)

        return SdkMetrics(
            activity_wait_ms=mean("temporal_activity_schedule_to_start_latency"),
            workflow_task_wait_ms=mean("temporal_workflow_task_schedule_to_start_latency"),
            slots_used=self._slots_used,
            cache_misses=int(now["temporal_sticky_cache_miss", ""]),
        )

    async def _read(self) -> Values:
        return await asyncio.to_thread(_values, self.url)


@functools.cache
def endpoint() -> Endpoint:
    """This process's."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    metrics = PrometheusConfig(bind_address=address)
    return Endpoint(
        Runtime(telemetry=TelemetryConfig(metrics=metrics)), f"http://{address}/metrics"
    )


def _values(url: str) -> Values:
    with urllib.request.urlopen(url, timeout=10) as response:
        text = response.read().decode()
    found: Values = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name, sample.labels.get("worker_type", "")] += sample.value
    return found
