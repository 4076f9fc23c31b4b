"""The plugin beside Pydantic AI's, in one client, worker and replayer."""

import uuid
from pathlib import Path

import pytest
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin
from temporalio.client import Plugin
from temporalio.worker import Replayer, Worker

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin

from .beside_pydantic_ai import BesidePydanticAI
from .conftest import FIXED, Repo
from .test_plugin import connect, contract


@pytest.mark.parametrize("ours", [0, 1], ids=["ours first", "ours last"])
async def test_a_run_is_the_child_of_a_workflow_with_an_agent_of_pydantic_ai(
    ours: int, address: str, data_dir: Path, repo: Repo, tmp_path: Path
) -> None:
    harness = HarnessPlugin(Settings(data_dir=data_dir))
    plugins: list[Plugin] = [PydanticAIPlugin()]
    plugins.insert(ours, harness)
    client = await connect(address, plugins)
    queue = f"pydantic-ai-{uuid.uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[BesidePydanticAI]) as worker:
        both = await client.start_workflow(
            BesidePydanticAI.run, contract(repo, tmp_path), id=queue, task_queue=queue
        )
        assert await both.result() == ["Good morning to you.", "success", "verified and landed"]
        activities = len(worker.config(active_config=True).get("activities", ()))
    assert activities > 10  # theirs and ours
    assert repo.read("calc.py") == FIXED
    types = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in both.fetch_history_events()
    ]
    assert any(name.startswith("agent__greeter__model_request") for name in types), types
    replayer = Replayer(workflows=[BesidePydanticAI], plugins=[PydanticAIPlugin(), harness])
    for run in (both, client.get_workflow_handle(f"{queue}-agent")):
        await replayer.replay_workflow(await run.fetch_history())
