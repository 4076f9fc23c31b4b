"""Temporal's integration of the OpenAI Agents SDK."""

import asyncio
from datetime import timedelta

from agents import Agent, RunConfig, Runner
from temporalio import activity, workflow
from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.openai_agents.workflow import activity_as_tool
from temporalio.worker import Worker

from .on_temporal import connect, report
from .openai_agents_local import MAX_TURNS, provider
from .task import Report, Task, contestant, in_shell

QUEUE = "openai-agents"
MINUTE = timedelta(seconds=60)
WORKSPACE: list[str] = []


@activity.defn
async def run_command(command: str) -> str:
    """Run a shell command in the workspace."""
    return await asyncio.to_thread(in_shell, command, WORKSPACE[0])


@workflow.defn(sandboxed=False)
class AgentWorkflow:
    @workflow.run
    async def run(self, goal: str) -> str:
        tool = activity_as_tool(run_command, start_to_close_timeout=MINUTE)
        agent = Agent(name="agent", model="scripted", tools=[tool])
        result = await Runner.run(
            agent, goal, max_turns=MAX_TURNS, run_config=RunConfig(tracing_disabled=True)
        )
        return str(result.final_output)


async def run(task: Task) -> Report:
    """The model provider is the worker's, so there is one run."""
    (url,) = task.urls
    WORKSPACE.append(task.workspace)
    plugin = OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=MINUTE),
        model_provider=provider(url),
        add_temporal_spans=False,
    )
    client = await connect(task.address, [plugin])
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[AgentWorkflow],
        activities=[run_command],
        build_id="openai-agents",
    )
    start = client.start_workflow(
        AgentWorkflow.run, task.goal, id=url.split("/")[3], task_queue=QUEUE
    )
    return await report(client, worker, [start])


if __name__ == "__main__":
    contestant(run)
