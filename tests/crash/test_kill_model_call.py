"""A worker killed in the middle of a model call: the call is made again, and booked once."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from io_harness.activities.model import Beat
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Say
from tests.integration.conftest import Handle

from .conftest import WorkerProcess
from .test_kill_worker import committed, events

REPLY = Usage(input=100, output=20)
FINISH = Say(calls=(Call("finish", {"summary": "done"}),), usage=REPLY)
ENDLESS = Say("word " * 2_000, usage=REPLY, pause=0.05, write_bytes=64)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the worker starts."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("api", "path", "known"),
    [
        # Anthropic says at the stream's begin what the input holds; OpenAI's API only at its end.
        ("anthropic", "", Usage(input=100)),
        ("openai-compatible", "/v1", Usage()),
    ],
)
async def test_a_worker_killed_in_a_model_call(
    client: Client, worker_process: WorkerProcess, tmp_path: Path, api: str, path: str, known: Usage
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("a\n")
    async with FakeProvider(ENDLESS, FINISH) as fake:
        contract = TaskContract.model_validate(
            {
                "goal": "Say that it is done.",
                "workspace": {"kind": "directory", "path": str(tmp_path / "source")},
                "verification": {"kind": "none"},
                "policy": "unattended",
                "budget": {"usd": 100},
                "model": {
                    "provider": api,
                    "name": "fake",
                    "base_url": fake.url + path,
                    "price": {"input": 1000, "output": 1000},
                },
            }
        )
        run = await client.start_workflow(
            AgentRun.run,
            contract.model_dump(mode="json"),
            id=f"crash-{uuid.uuid4().hex[:8]}",
            task_queue=worker_process.task_queue,
        )
        beat = await anext(b async for b in beats(run) if b.received_bytes > 1_000)
        assert beat.usage.input == known.input, "what is known so far"
        await worker_process.again()
        result = await run.result()
        requests = len(fake.requests)
    assert result.outcome is Outcome.FINISHED, result.reason
    assert requests == 2
    assert committed(await events(run))["complete"] == 1
    assert result.spend.steps == 1
    assert result.spend.usage.input == REPLY.input + known.input
    assert result.spend.usd == result.spend.usage.total / Decimal(1000)


async def beats(run: Handle) -> AsyncIterator[Beat]:
    """What the model call's heartbeats tell the server."""
    while True:
        described = await run.describe()
        assert described.status is WorkflowExecutionStatus.RUNNING, await run.result()
        for pending in described.raw_description.pending_activities:
            for payload in pending.heartbeat_details.payloads:
                yield Beat.model_validate_json(payload.data)
        await asyncio.sleep(0.2)
