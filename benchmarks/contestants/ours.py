"""io-harness: policy checked, command sandboxed, workspace snapshotted in each turn."""

from pathlib import Path

from pydantic import JsonValue

from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract

from .on_temporal import connect, report
from .task import Report, Task, contestant


async def run(task: Task) -> Report:
    plugin = HarnessPlugin(Settings(data_dir=Path(task.scratch)))
    client = await connect(task.address, [plugin])
    starts = [
        client.start_workflow(
            AgentRun.run, contract_for(task, url), id=url.split("/")[3], task_queue=TASK_QUEUE
        )
        for url in task.urls
    ]
    return await report(client, harness_worker(client), starts)


def contract_for(task: Task, url: str, *, policy: str = "unattended") -> JsonValue:
    contract = TaskContract.model_validate(
        {
            "goal": task.goal,
            "workspace": {"kind": "directory", "path": task.workspace},
            "verification": {"kind": "none"},
            "model": {"provider": "openai-compatible", "name": "scripted", "base_url": url},
            "policy": policy,
            "budget": {"steps": 2_000, "tool_calls": 2_000, "tokens": 1_000_000_000},
        }
    )
    dumped: JsonValue = contract.model_dump(mode="json")
    return dumped


if __name__ == "__main__":
    contestant(run)
