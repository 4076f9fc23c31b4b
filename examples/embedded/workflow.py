"""A workflow that has nothing to do with the harness."""

from datetime import timedelta

from temporalio import workflow


@workflow.defn
class Greeting:
    @workflow.run
    async def run(self, name: str) -> str:
        greeting: str = await workflow.execute_activity(
            "greet", name, start_to_close_timeout=timedelta(seconds=10)
        )
        return greeting
