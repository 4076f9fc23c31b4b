"""The OpenAI Agents SDK in one process: nothing survives it."""

import asyncio

from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from .task import Meter, Report, RunReport, Task, contestant, in_shell

MAX_TURNS = 100_000


def provider(url: str) -> OpenAIProvider:
    client = AsyncOpenAI(base_url=url, api_key="none")
    return OpenAIProvider(openai_client=client, use_responses=False)


async def run(task: Task) -> Report:
    (url,) = task.urls

    @function_tool
    async def run_command(command: str) -> str:
        """Run a shell command in the workspace."""
        return await asyncio.to_thread(in_shell, command, task.workspace)

    agent = Agent(name="agent", model="scripted", tools=[run_command])
    config = RunConfig(model_provider=provider(url), tracing_disabled=True)
    meter = Meter()
    await Runner.run(agent, task.goal, max_turns=MAX_TURNS, run_config=config)
    return meter.report([RunReport(outcome="done")])


if __name__ == "__main__":
    contestant(run)
