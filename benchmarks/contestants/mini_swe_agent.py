"""mini-swe-agent in one process."""

import os

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

from .task import Meter, Report, RunReport, Task, contestant


async def run(task: Task) -> Report:
    (url,) = task.urls
    model = LitellmModel(
        model_name="openai/scripted",
        model_kwargs={"api_base": url, "api_key": "none"},
        cost_tracking="ignore_errors",
    )
    agent = DefaultAgent(
        model,
        LocalEnvironment(cwd=task.workspace),
        system_template="You are an agent.",
        instance_template="{{task}}",
        cost_limit=0,
    )
    meter = Meter()
    result = agent.run(task.goal)
    outcome = "done" if result["exit_status"] == "Submitted" else result["exit_status"]
    return meter.report([RunReport(outcome=outcome)])


if __name__ == "__main__":
    contestant(run)
