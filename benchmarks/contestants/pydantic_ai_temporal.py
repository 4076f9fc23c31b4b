"""pydantic-ai with its `TemporalDurability`."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import (
    PydanticAIPlugin,
    PydanticAIWorkflow,
    TemporalDurability,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits
from temporalio import workflow
from temporalio.worker import Worker

from .on_temporal import connect, report
from .task import Report, Task, contestant, in_shell

QUEUE = "pydantic-ai"
AGENTS: list["Agent[None, str]"] = []


def agent_for(url: str, workspace: str, *, durable: bool) -> "Agent[None, str]":
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, name="agent", capabilities=[TemporalDurability()] if durable else [])

    @agent.tool_plain
    async def run_command(command: str) -> str:
        """Run a shell command in the workspace."""
        return await asyncio.to_thread(in_shell, command, workspace)

    return agent


@workflow.defn(sandboxed=False)
class AgentWorkflow(PydanticAIWorkflow):
    @workflow.run
    async def run(self, goal: str) -> str:
        result = await AGENTS[0].run(goal, usage_limits=UsageLimits(request_limit=None))
        return result.output


async def run(task: Task) -> Report:
    """An agent's model is fixed at its worker, so there is one run."""
    (url,) = task.urls
    AGENTS.append(agent_for(url, task.workspace, durable=True))
    AgentWorkflow.__pydantic_ai_agents__ = AGENTS
    client = await connect(task.address, [PydanticAIPlugin()])
    worker = Worker(client, task_queue=QUEUE, workflows=[AgentWorkflow], build_id="pydantic-ai")
    start = client.start_workflow(
        AgentWorkflow.run, task.goal, id=url.split("/")[3], task_queue=QUEUE
    )
    return await report(client, worker, [start])


if __name__ == "__main__":
    contestant(run)
