"""A user's own workflow: an agent of the OpenAI Agents SDK, and a run of ours as its child."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from agents import Agent, Runner
    from pydantic import JsonValue

    from io_harness.workflows.agent_run import AgentRun


@workflow.defn
class Bigger:
    @workflow.run
    async def run(self, contract: JsonValue) -> list[str]:
        said = await Runner.run(Agent(name="Greeter", instructions="Greet."), "Good morning.")
        done = await workflow.execute_child_workflow(
            AgentRun.run, contract, id=f"{workflow.info().workflow_id}-agent"
        )
        return [str(said.final_output), done.outcome, done.reason]
