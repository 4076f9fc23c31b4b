"""The yardstick: a workflow of two activities per turn, and nothing else. It asks the model, runs the
command in a bare subprocess, and keeps no transcript."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import httpx
from temporalio import activity, workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from .on_temporal import connect, report
from .task import Report, Task, contestant, in_shell

QUEUE = "bare"


class Activities:
    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._http = httpx.AsyncClient(timeout=60)

    async def next_command(self, url: str, messages: Sequence[dict[str, str]]) -> str:
        """The command of the model's next tool call; empty at the end."""
        reply = await self._http.post(
            f"{url}/chat/completions", json={"model": "scripted", "messages": messages}
        )
        message = reply.raise_for_status().json()["choices"][0]["message"]
        calls = message.get("tool_calls")
        return json.loads(calls[0]["function"]["arguments"])["command"] if calls else ""

    @activity.defn
    async def ask(self, url: str) -> str:
        return await self.next_command(url, [])

    @activity.defn
    async def act(self, command: str) -> str:
        return await asyncio.to_thread(self.run_command, command)

    def run_command(self, command: str) -> str:
        return in_shell(command, self._workspace)


@workflow.defn
class BareRun:
    @workflow.run
    async def run(self, url: str) -> int:
        activity_of = partial(
            workflow.execute_activity, start_to_close_timeout=timedelta(seconds=60)
        )
        turns = 0
        while command := await activity_of("ask", url, result_type=str):
            await activity_of("act", command, result_type=str)
            turns += 1
            info = workflow.info()
            if info.is_continue_as_new_suggested():
                workflow.continue_as_new(url)
        return turns


async def run(task: Task) -> Report:
    return await play(task, Activities(task.workspace))


async def play(task: Task, activities: Activities) -> Report:
    client = await connect(task.address)
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[BareRun],
        activities=[activities.ask, activities.act],
        workflow_runner=UnsandboxedWorkflowRunner(),
        build_id="bare",
    )
    starts = [
        client.start_workflow(BareRun.run, url, id=url.split("/")[3], task_queue=QUEUE)
        for url in task.urls
    ]
    return await report(client, worker, starts)


if __name__ == "__main__":
    contestant(run)
