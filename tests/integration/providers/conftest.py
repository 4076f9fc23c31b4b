"""Runs on the real Temporal server whose models are fake providers."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle

from io_harness.plugin import TASK_QUEUE
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Say
from tests.unit.providers.conftest import APIS

FINISH = Say(calls=(Call("finish", {"summary": "done"}, id="end"),))


@dataclass(frozen=True)
class Run:
    handle: WorkflowHandle[AgentRun, RunResult]

    async def result(self) -> RunResult:
        return await self.handle.result()

    async def model_calls(self) -> int:
        """Calls of the activity `complete` in history, retries not counted."""
        scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        history = await self.handle.fetch_history()
        return sum(
            event.activity_task_scheduled_event_attributes.activity_type.name == "complete"
            for event in history.events
            if event.event_type == scheduled
        )


def model_of(fake: FakeProvider, api: str = "openai", **more: object) -> dict[str, object]:
    return {
        "provider": api,
        "name": "fake",
        "base_url": fake.url + APIS[api],
        "api_key": "env:OPENAI_API_KEY",
        "price": {"input": 1, "output": 2},
        **more,
    }


Begin = Callable[..., Awaitable[Run]]


@pytest.fixture
def begin(client: Client, worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Starts a run with the given models, first choice first; keywords go to the contract."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-of-the-fake")
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("hello\n")

    async def begin(*models: dict[str, object], **contract: object) -> Run:
        first, *rest = models
        whole = {
            "goal": "Read a.txt.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "none"},
            "policy": "unattended",
            "model": first,
            "fallbacks": rest,
            **contract,
        }
        valid = TaskContract.model_validate(whole).model_dump(mode="json")
        run_id = f"provider-{uuid.uuid4().hex[:8]}"
        return Run(
            await client.start_workflow(AgentRun.run, valid, id=run_id, task_queue=TASK_QUEUE)
        )

    return begin
