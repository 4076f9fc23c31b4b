"""What one writes first: a workflow of two activities that passes the whole transcript to each model
call, so that each message is in history as often as there are calls after it."""

from datetime import timedelta
from functools import partial

from temporalio import activity, workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from .bare import Activities
from .on_temporal import connect, report
from .task import Report, Task, contestant

QUEUE = "whole-transcript"
Message = dict[str, str]


class AskingWithAll(Activities):
    @activity.defn
    async def ask_with_all(self, url: str, transcript: list[Message]) -> str:
        return await self.next_command(url, transcript)


@workflow.defn
class WholeTranscriptRun:
    @workflow.run
    async def run(self, url: str) -> int:
        activity_of = partial(
            workflow.execute_activity, start_to_close_timeout=timedelta(seconds=60)
        )
        transcript: list[Message] = [{"role": "user", "content": "Do what the script says."}]
        turns = 0
        while command := await activity_of("ask_with_all", args=[url, transcript], result_type=str):
            output = await activity_of("act", command, result_type=str)
            transcript.append({"role": "assistant", "content": command})
            transcript.append({"role": "tool", "content": output})
            turns += 1
        return turns


async def run(task: Task) -> Report:
    client = await connect(task.address)
    activities = AskingWithAll(task.workspace)
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[WholeTranscriptRun],
        activities=[activities.ask_with_all, activities.act],
        workflow_runner=UnsandboxedWorkflowRunner(),
        build_id="whole-transcript",
    )
    starts = [
        client.start_workflow(WholeTranscriptRun.run, url, id=url.split("/")[3], task_queue=QUEUE)
        for url in task.urls
    ]
    return await report(client, worker, starts)


if __name__ == "__main__":
    contestant(run)
