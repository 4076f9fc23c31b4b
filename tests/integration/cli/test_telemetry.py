"""What a collector gets of a run: once, by the conventions, and without contents unless asked for.

The run waits for a person while its worker ends; others replay it and go on.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from io_harness.activities.telemetry.content import CAPTURE
from io_harness.activities.telemetry.metrics import METRICS

from .collector import Collector, Value, attributes, collecting, points
from .conftest import Recorded, Shell

pytestmark = pytest.mark.timeout(300)

GOAL, STORY = "the-secret-goal", "the-secret-story"
TURNS = """
expect: [{role: user, contains: []}]
reply:
  parts:
    - {kind: text, text: the-secret-words}
    - {kind: tool_call, id: a, name: read_file, arguments: {path: story.txt}}
    - {kind: tool_call, id: b, name: write_file, arguments: {path: .env, content: x}}
    - {kind: tool_call, id: c, name: invented_by_the_model, arguments: {}}
    - {kind: tool_call, id: d, name: run_command, arguments: {command: echo hello > note}}
  finish: tool_use
  usage: {input: 100, cached: 30, output: 20}
  cost_usd: '0.25'
---
expect:
  - {role: tool, call_id: a, is_error: false, contains: []}
  - {role: tool, call_id: b, is_error: true, contains: []}
  - {role: tool, call_id: c, is_error: true, contains: []}
  - {role: tool, call_id: d, is_error: false, contains: []}
reply:
  parts: [{kind: tool_call, id: e, name: finish, arguments: {summary: read}}]
  finish: tool_use
  usage: {input: 200, output: 10}
  cost_usd: '0.5'
"""
TYPES: dict[str, type] = {
    "gen_ai.operation.name": str, "gen_ai.provider.name": str, "gen_ai.agent.name": str,
    "gen_ai.agent.version": str, "gen_ai.conversation.id": str, "gen_ai.request.model": str,
    "gen_ai.request.max_tokens": int, "gen_ai.request.temperature": float,
    "gen_ai.response.model": str, "gen_ai.response.finish_reasons": list,
    "gen_ai.usage.input_tokens": int, "gen_ai.usage.output_tokens": int,
    "gen_ai.usage.cache_read.input_tokens": int, "gen_ai.usage.cache_creation.input_tokens": int,
    "gen_ai.usage.reasoning.output_tokens": int, "gen_ai.token.type": str, "gen_ai.tool.name": str,
    "gen_ai.tool.call.id": str, "gen_ai.tool.type": str, "error.type": str, "server.address": str,
    "server.port": int, "process.exit.code": int, "gen_ai.system_instructions": str,
    "gen_ai.input.messages": str, "gen_ai.output.messages": str, "gen_ai.tool.call.arguments": str,
    "gen_ai.tool.call.result": str,
}  # fmt: skip
"""As the conventions' registry gives them; contents are JSON text, which it allows on spans."""
LATER = {"gen_ai.execute_tool.duration"}
"""In the conventions' own repository, and not yet in the package that this is judged by."""


def known_attributes() -> set[str]:
    package = importlib.import_module("opentelemetry.semconv._incubating.attributes")
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    ]
    return {v for module in modules for v in vars(module).values() if isinstance(v, str)}


@dataclass
class Told:
    collector: Collector
    run: str

    def of(self, span: Span) -> dict[str, Value]:
        return attributes(span.attributes)


def run_that_moves(shell: Shell, model: str) -> None:
    """One process works until it waits, another takes the decision, a third replays it and goes on."""
    (shell.cwd / "story.txt").write_text(STORY)
    waits = shell.run(
        "run", "--id", "tale", "--goal", GOAL, "-w", ".", "--model", model, "--policy", "unattended",
        "--verify", "true", "--land", "apply", "--set", "landing.approve=ask",
    )  # fmt: skip
    assert waits.code == 5, waits.err + waits.out
    assert shell.run("approve", "tale").code == 0
    ended = shell.run("watch", "tale")
    assert ended.code == 0, ended.err + ended.out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("told")
    work = folder / "work"
    work.mkdir()
    shell = Shell(folder / "home", work)
    yield shell
    for process in shell.started:
        if process.poll() is None:
            process.kill()


@pytest.fixture(scope="module")
def told(place: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """What the collector got, without contents."""
    recording = tmp_path_factory.mktemp("model") / "recording.yaml"
    recording.write_text("format: 1\n---\n" + TURNS)
    with collecting() as collector:
        place.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
        run_that_moves(place, f"replay/{recording}")
        yield Told(collector, "tale")


def test_each_thing_that_happened_is_told_once(told: Told) -> None:
    got = told.collector
    assert got.repeated() == []
    (run,) = got.named("invoke_agent")
    assert {span.trace_id for span in got.spans} == {run.trace_id}
    assert [told.of(s)["io_harness.step"] for s in got.named("chat")] == [1, 2]
    for name, times in {
        "execute_tool read_file": 1, "execute_tool write_file": 1, "execute_tool run_command": 1,
        "sandbox": 2, "verify": 1, "prepare": 1, "release": 1, "approval": 1, "land": 2,
    }.items():  # fmt: skip
        assert len(got.named(name)) == times, name
    (approval,) = got.named("approval")
    assert approval.parent_span_id == run.span_id
    assert told.of(approval)["io_harness.approval.verdict"] == "approve"
    assert approval.start_time_unix_nano < approval.end_time_unix_nano
    for span in (*got.named("chat"), *got.named("execute_tool"), *got.named("verify")):
        assert span.parent_span_id == run.span_id
        assert run.start_time_unix_nano <= span.start_time_unix_nano
        assert span.end_time_unix_nano <= run.end_time_unix_nano
    (command,) = got.named("execute_tool run_command")
    assert command.span_id in {span.parent_span_id for span in got.named("sandbox")}


def test_metrics_add_up(told: Told) -> None:
    total = told.collector.total
    assert total("io_harness.runs") == 1
    assert total("gen_ai.client.token.usage") == 130 + 20 + 200 + 10
    assert total("io_harness.model_call.cost_usd") == pytest.approx(0.75)
    assert total("io_harness.run.cost_usd") == pytest.approx(0.75)
    assert total("io_harness.refusals") == 1
    assert total("io_harness.verifications") == 1
    assert 0 < total("io_harness.run.waiting") < total("io_harness.run.duration")
    assert total("temporal_activity_task_received") > 5  # the SDK's own are there too


def test_names_and_types_are_those_of_the_conventions(told: Told) -> None:
    known = known_attributes()
    found = [(span.name, *pair) for span in told.collector.spans for pair in told.of(span).items()]
    metrics = told.collector.metrics()
    for metric in METRICS:
        got = metrics[metric.name]
        for point in points(got):
            labels = attributes(point.attributes)
            assert labels.keys() <= set(metric.attributes), metric.name
            found += [(metric.name, *pair) for pair in labels.items()]
    assert len(found) > 100
    for where, name, value in found:
        if name.startswith("io_harness."):
            continue
        assert name in known, (where, name)
        assert type(value) is TYPES[name], (where, name, value)


def test_spans_are_named_and_marked_by_the_conventions(told: Told) -> None:
    (run,) = told.collector.named("invoke_agent")
    assert run.name == "invoke_agent io-harness"
    for span in told.collector.named("chat"):
        about = told.of(span)
        assert span.name == f"chat {about['gen_ai.request.model']}"
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert about["gen_ai.operation.name"] == "chat"
        assert about["gen_ai.conversation.id"] == told.run
    for span in told.collector.named("execute_tool"):
        about = told.of(span)
        assert span.name == f"execute_tool {about['gen_ai.tool.name']}"
        assert about["gen_ai.operation.name"] == "execute_tool"
    (refused,) = told.collector.named("execute_tool write_file")
    assert told.of(refused)["io_harness.policy.layer"]
    assert {span.status.code for span in told.collector.spans} == {Status.STATUS_CODE_UNSET}


def test_metrics_are_those_of_the_conventions(told: Told) -> None:
    makers = {
        gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE: gen_ai_metrics.create_gen_ai_client_token_usage,
        gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION:
            gen_ai_metrics.create_gen_ai_client_operation_duration,
    }  # fmt: skip
    meter = MeterProvider().get_meter("judge")
    ours = {metric.name for metric in METRICS if metric.name.startswith("gen_ai.")}
    assert ours == makers.keys() | LATER
    for name, make in makers.items():
        got, wanted = told.collector.metrics()[name], make(meter)
        assert got.unit == wanted.unit  # type: ignore[attr-defined]
        assert got.WhichOneof("data") == "histogram"
    (point, *_) = points(told.collector.metrics()["gen_ai.client.token.usage"])
    assert list(point.explicit_bounds)[:4] == [1, 4, 16, 64]  # type: ignore[union-attr]


def test_a_tool_that_a_model_invented_makes_no_series(told: Told) -> None:
    metric = told.collector.metrics()["gen_ai.execute_tool.duration"]
    names = [attributes(point.attributes)["gen_ai.tool.name"] for point in points(metric)]
    assert "read_file" in names
    assert "invented_by_the_model" not in names
    assert told.collector.named("execute_tool invented") == []


def test_no_content_is_told(told: Told) -> None:
    everything = b"".join(told.collector.bodies)
    for secret in (GOAL, STORY, "the-secret-words", "echo hello"):
        assert secret.encode() not in everything, secret


def test_contents_are_told_where_that_is_asked_for(shell: Shell, recorded: Recorded) -> None:
    (shell.cwd / "story.txt").write_text(STORY)
    with collecting() as collector:
        shell.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, CAPTURE: "true"}
        done = shell.run(
            "run", "--goal", GOAL, "-w", ".", "--model", recorded(TURNS), "--policy", "unattended"
        )
        assert done.code == 0, done.err + done.out
        told = [attributes(span.attributes) for span in collector.spans]
    everything = b"".join(collector.bodies).decode(errors="replace")
    for secret in (GOAL, STORY, "the-secret-words", "echo hello"):
        assert secret in everything, secret
    names = {name for each in told for name in each}
    assert {
        "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages",
        "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    } <= names  # fmt: skip
    assert all(type(each[name]) is TYPES[name] for each in told for name in each.keys() & TYPES)
