"""A user's own workflow: an agent of Pydantic AI, and a run of ours as its child."""

from datetime import timedelta

from temporalio import workflow
from temporalio.workflow import ActivityConfig

with workflow.unsafe.imports_passed_through():
    from pydantic import JsonValue
    from pydantic_ai import Agent
    from pydantic_ai.durable_exec.temporal import PydanticAIWorkflow, TemporalDurability
    from pydantic_ai.models.test import TestModel

    from io_harness.workflows.agent_run import AgentRun

AGENT = Agent(
    TestModel(custom_output_text="Good morning to you."),
    name="greeter",
    capabilities=[
        TemporalDurability(
            activity_config=ActivityConfig(start_to_close_timeout=timedelta(seconds=30))
        )
    ],
)


@workflow.defn
class BesidePydanticAI(PydanticAIWorkflow):
    __pydantic_ai_agents__ = [AGENT]

    @workflow.run
    async def run(self, contract: JsonValue) -> list[str]:
        said = await AGENT.run("Good morning.")
        done = await workflow.execute_child_workflow(
            AgentRun.run, contract, id=f"{workflow.info().workflow_id}-agent"
        )
        return [said.output, done.outcome, done.reason]
