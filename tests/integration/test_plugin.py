"""The plugin in a user's own client and worker, beside other plugins."""

import asyncio
import dataclasses
import itertools
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import opentelemetry.trace
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, Plugin, WorkflowHandle
from temporalio.contrib.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.contrib.openai_agents.testing import (
    ResponseBuilders,
    TestModel,
    TestModelProvider,
)
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.converter import DataConverter, DefaultPayloadConverter, PayloadCodec
from temporalio.plugin import SimplePlugin
from temporalio.service import GrpcCompression
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin, harness_worker
from io_harness.telemetry import TelemetryPlugin
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from tests.scripted import call, turn, write_script

from .bigger import Bigger
from .conftest import FIXED, VERIFY, Repo
from .test_approvals import decide, pending


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = create_tracer_provider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.trace.set_tracer_provider(provider)
    return exporter


def agents_plugin() -> OpenAIAgentsPlugin:
    said = itertools.repeat(ResponseBuilders.output_message("Good morning to you."))
    return OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=timedelta(seconds=30)),
        model_provider=TestModelProvider(TestModel(lambda: next(said))),
    )


def contract(repo: Repo, tmp_path: Path) -> dict[str, JsonValue]:
    script = write_script(
        tmp_path / "script.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("run_command", command="python -m unittest -q test_calc")),
        turn(call("finish", summary="add adds now")),
    )
    whole = TaskContract.model_validate(
        {
            "goal": "Make add right.",
            "workspace": {"kind": "directory", "path": str(repo.path)},
            "verification": VERIFY,
            "policy": "unattended",
            "model": {"provider": "replay", "name": "script", "base_url": script},
        }
    )
    return whole.model_dump(mode="json")


async def connect(address: str, plugins: Sequence[Plugin], **more: object) -> Client:
    return await Client.connect(
        address,
        plugins=plugins,
        grpc_compression=GrpcCompression.NONE,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("ours", [0, 2], ids=["ours first", "ours last"])
async def test_a_run_is_the_child_of_a_workflow_beside_temporals_own_plugins(
    ours: int,
    address: str,
    data_dir: Path,
    repo: Repo,
    tmp_path: Path,
    spans: InMemorySpanExporter,
) -> None:
    spans.clear()
    harness = HarnessPlugin(Settings(data_dir=data_dir))
    plugins: list[Plugin] = [OpenTelemetryPlugin(add_temporal_spans=True), agents_plugin()]
    plugins.insert(ours, harness)
    client = await connect(address, plugins)
    queue = f"shop-{uuid.uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[Bigger]):
        bigger = await client.start_workflow(
            Bigger.run, contract(repo, tmp_path), id=queue, task_queue=queue
        )
        assert await bigger.result() == ["Good morning to you.", "success", "verified and landed"]
        child: WorkflowHandle[AgentRun, object] = client.get_workflow_handle(f"{queue}-agent")
        assert (await child.query(AgentRun.status)).state == "success"
    assert repo.read("calc.py") == FIXED
    names = {span.name for span in spans.get_finished_spans()}
    assert {"RunWorkflow:Bigger", "RunWorkflow:AgentRun", "RunActivity:use_tool"} <= names
    replayer = Replayer(
        workflows=[Bigger],
        plugins=[OpenTelemetryPlugin(add_temporal_spans=True), agents_plugin(), harness],
    )
    for each in (bigger, child):
        await replayer.replay_workflow(await each.fetch_history())


async def test_a_run_that_is_replayed_at_each_turn_has_its_spans_once(
    address: str, data_dir: Path, repo: Repo, tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    """A worker without a cache evicts the run after each of its tasks."""
    spans.clear()
    plugins = [OpenTelemetryPlugin(), TelemetryPlugin(), HarnessPlugin(Settings(data_dir=data_dir))]
    client = await connect(address, plugins)
    queue = f"evicted-{uuid.uuid4().hex[:8]}"
    whole: dict[str, JsonValue] = contract(repo, tmp_path) | {"policy": "careful"}
    async with Worker(client, task_queue=queue, max_cached_workflows=0):
        run = await client.start_workflow(AgentRun.run, whole, id=queue, task_queue=queue)
        for _ in range(2):
            (waiting,) = await pending(run)
            await decide(run, waiting.id, "approve")
            while waiting in await run.query(AgentRun.pending_approvals):
                await asyncio.sleep(0.05)
        result = await run.result()
    assert result.outcome == "success", result.reason
    # An attempt that failed on the way has a span of its own.
    done = [s for s in spans.get_finished_spans() if "error.type" not in (s.attributes or {})]
    times = Counter(span.name for span in done)
    assert times["invoke_agent io-harness"] == 1
    assert times["approval"] == 2
    assert times["chat script"] == result.spend.steps == 3
    (whole_run,) = (s for s in spans.get_finished_spans() if s.name.startswith("invoke_agent"))
    assert whole_run.context
    for span in spans.get_finished_spans():
        assert span.context
        assert span.context.trace_id == whole_run.context.trace_id
    assert whole_run.attributes
    assert whole_run.attributes["io_harness.outcome"] == "success"


def unused() -> str:
    """A queue on which no other worker of this process can be."""
    return f"unused-{uuid.uuid4().hex[:8]}"


class Reversing(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=p.metadata, data=p.data[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await self.encode(payloads)


@pytest.mark.parametrize("ours", [0, 1])
async def test_another_plugins_codec_stays_and_is_used(
    ours: int, address: str, data_dir: Path, repo: Repo, tmp_path: Path
) -> None:
    codec = Reversing()

    def with_codec(converter: DataConverter | None) -> DataConverter:
        return dataclasses.replace(converter or DataConverter.default, payload_codec=codec)

    plugins: list[Plugin] = [SimplePlugin("codec", data_converter=with_codec)]
    plugins.insert(ours, HarnessPlugin(Settings(data_dir=data_dir)))
    client = await connect(address, plugins)
    assert client.data_converter.payload_codec is codec
    queue = f"codec-{uuid.uuid4().hex[:8]}"
    async with harness_worker(client, task_queue=queue):
        run = await client.start_workflow(
            AgentRun.run, contract(repo, tmp_path), id=queue, task_queue=queue
        )
        assert (await run.result()).outcome == "success"
    started = (await run.fetch_history()).events[0].workflow_execution_started_event_attributes
    assert started.input.payloads[0].data.startswith(b"}")


async def test_given_twice_it_counts_once(client: Client, data_dir: Path) -> None:
    again = HarnessPlugin(Settings(data_dir=data_dir))
    with pytest.warns(UserWarning, match="from both client and worker"):
        worker = Worker(client, task_queue=unused(), plugins=[again])
    config = worker.config(active_config=True)
    assert list(config.get("workflows", ())) == [AgentRun]
    assert len(config.get("activities", ())) == 11


async def test_two_of_different_settings_are_refused(client: Client, tmp_path: Path) -> None:
    other = HarnessPlugin(Settings(data_dir=tmp_path))
    with (
        pytest.warns(UserWarning, match="from both client and worker"),
        pytest.raises(ValueError, match="different settings"),
    ):
        Worker(client, task_queue=unused(), plugins=[other])


async def test_a_client_without_it_is_refused(address: str, data_dir: Path) -> None:
    plain = await connect(address, [])
    with pytest.raises(ValueError, match=r"give HarnessPlugin to Client\.connect"):
        Worker(plain, task_queue=unused(), plugins=[HarnessPlugin(Settings(data_dir=data_dir))])


async def test_what_the_user_set_stays(client: Client) -> None:
    throttle = timedelta(seconds=7)
    runner = UnsandboxedWorkflowRunner()
    worker = Worker(
        client,
        task_queue=unused(),
        max_heartbeat_throttle_interval=throttle,
        workflow_runner=runner,
    )
    config = worker.config(active_config=True)
    assert config.get("max_heartbeat_throttle_interval") == throttle
    assert config.get("workflow_runner") is runner


async def test_a_users_own_converter_is_kept_and_refused_with_words(
    address: str, data_dir: Path
) -> None:
    class Own(DefaultPayloadConverter):
        pass

    client = await connect(
        address,
        [HarnessPlugin(Settings(data_dir=data_dir))],
        data_converter=dataclasses.replace(DataConverter.default, payload_converter_class=Own),
    )
    assert client.data_converter.payload_converter_class is Own
    with pytest.raises(ValueError, match=r"Own, can't carry pydantic models"):
        Worker(client, task_queue=unused())


BEAT = "while :; do date +%s%N > beat; sleep 0.05; done"
LOOK = 'a=$(cat beat); sleep 1; b=$(cat beat); [ "$a" != "$b" ] && echo still beating'


async def test_the_end_of_one_worker_leaves_the_others_of_its_client_alone(
    address: str, data_dir: Path, repo: Repo, tmp_path: Path
) -> None:
    client = await connect(address, [HarnessPlugin(Settings(data_dir=data_dir))])
    queue = f"pair-{uuid.uuid4().hex[:8]}"
    whole: dict[str, JsonValue] = contract(repo, tmp_path) | {
        "policy": "careful",
        "verification": {"kind": "none"},
    }
    write_script(
        tmp_path / "script.yaml",
        turn(call("start_job", command=BEAT)),
        turn(call("run_command", command=LOOK, shows=("still beating",))),
        turn(call("finish", summary="done")),
    )
    async with harness_worker(client, task_queue=queue):
        async with harness_worker(client, task_queue=f"{queue}-other"):
            run = await client.start_workflow(AgentRun.run, whole, id=queue, task_queue=queue)
            (job,) = await pending(run)
            await decide(run, job.id, "approve")
            while not (look := await run.query(AgentRun.pending_approvals)) or look[0].id == job.id:
                await asyncio.sleep(0.05)
        await decide(run, look[0].id, "approve")
        result = await run.result()
    assert result.outcome == "finished", result.reason
