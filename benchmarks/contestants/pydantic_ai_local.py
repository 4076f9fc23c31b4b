"""pydantic-ai in one process: nothing survives it."""

from pydantic_ai.usage import UsageLimits

from .pydantic_ai_temporal import agent_for
from .task import Meter, Report, RunReport, Task, contestant


async def run(task: Task) -> Report:
    (url,) = task.urls
    agent = agent_for(url, task.workspace, durable=False)
    meter = Meter()
    await agent.run(task.goal, usage_limits=UsageLimits(request_limit=None))
    return meter.report([RunReport(outcome="done")])


if __name__ == "__main__":
    contestant(run)
