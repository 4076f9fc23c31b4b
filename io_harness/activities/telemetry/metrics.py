"""The metrics: a table from which instruments, documentation and tests are made."""

from dataclasses import dataclass

from opentelemetry import metrics
from opentelemetry.util.types import Attributes

from io_harness import __version__

NAME = "io_harness"
"""Of the meter and the tracer."""

_LATENCIES = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
_SPANS_OF_TIME = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800)
_TOKENS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
_DOLLARS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50)


@dataclass(frozen=True)
class Metric:
    """One metric. With buckets it is a histogram, without a counter."""

    name: str
    unit: str
    meaning: str
    attributes: tuple[str, ...]
    buckets: tuple[float, ...] = ()


_MODEL = (
    "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "server.address",
    "server.port",
)  # fmt: skip

TOKENS = Metric(
    "gen_ai.client.token.usage", "{token}", "Tokens that one attempt at a model call used.",
    (*_MODEL, "gen_ai.token.type"), _TOKENS,
)  # fmt: skip
MODEL_SECONDS = Metric(
    "gen_ai.client.operation.duration", "s", "Time of one attempt at a model call.",
    (*_MODEL, "error.type"), _LATENCIES,
)  # fmt: skip
MODEL_COST = Metric(
    "io_harness.model_call.cost_usd", "{USD}", "Price of one attempt at a model call, if known.",
    _MODEL, _DOLLARS,
)  # fmt: skip
TOOL_SECONDS = Metric(
    "gen_ai.execute_tool.duration", "s", "Time of one attempt at a tool call.",
    ("gen_ai.operation.name", "gen_ai.tool.name", "error.type"), _LATENCIES,
)  # fmt: skip
REFUSALS = Metric(
    "io_harness.refusals", "{call}", "Tool calls that the policy refused.",
    ("gen_ai.tool.name", "io_harness.policy.layer"),
)  # fmt: skip
SANDBOX_SECONDS = Metric(
    "io_harness.sandbox.duration", "s", "Time of one sandboxed command.",
    ("io_harness.sandbox.backend", "io_harness.sandbox.cause"), _LATENCIES,
)  # fmt: skip
VERIFICATIONS = Metric(
    "io_harness.verifications", "{verification}", "Claims to be done that were verified.",
    ("io_harness.verification.verdict",),
)  # fmt: skip
RUNS = Metric("io_harness.runs", "{run}", "Runs that ended with a result.", ("io_harness.outcome",))
RUN_SECONDS = Metric(
    "io_harness.run.duration", "s", "Time of a run from start to end.", ("io_harness.outcome",),
    _SPANS_OF_TIME,
)  # fmt: skip
RUN_WAITING = Metric(
    "io_harness.run.waiting", "s", "How much of a run's time it waited for people.",
    ("io_harness.outcome",), _SPANS_OF_TIME,
)  # fmt: skip
RUN_COST = Metric(
    "io_harness.run.cost_usd", "{USD}", "What a run spent.", ("io_harness.outcome",), _DOLLARS
)

METRICS = (
    TOKENS, MODEL_SECONDS, MODEL_COST, TOOL_SECONDS, REFUSALS, SANDBOX_SECONDS, VERIFICATIONS, RUNS,
    RUN_SECONDS, RUN_WAITING, RUN_COST,
)  # fmt: skip

_meter = metrics.get_meter(NAME, __version__)
_counters = {m: _meter.create_counter(m.name, m.unit, m.meaning) for m in METRICS if not m.buckets}
_histograms = {
    m: _meter.create_histogram(
        m.name, m.unit, m.meaning, explicit_bucket_boundaries_advisory=list(m.buckets)
    )
    for m in METRICS
    if m.buckets
}


def count(metric: Metric, attributes: Attributes) -> None:
    _counters[metric].add(1, attributes)


def measure(metric: Metric, amount: float, attributes: Attributes) -> None:
    _histograms[metric].record(amount, attributes)
