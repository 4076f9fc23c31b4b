"""A run as the child of a bigger workflow: fix several repositories, and say how each went.

The worker is that of the example `embedded`, with this workflow in its list.
"""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError

with workflow.unsafe.imports_passed_through():
    from pydantic import JsonValue

    from io_harness.workflows.agent_run import AgentRun


@workflow.defn
class FixAll:
    """Takes contracts; returns an outcome, or an error code, for each."""

    @workflow.run
    async def run(self, contracts: list[JsonValue]) -> list[str]:
        return list(await asyncio.gather(*map(self._one, range(len(contracts)), contracts)))

    async def _one(self, number: int, contract: JsonValue) -> str:
        try:
            result = await workflow.execute_child_workflow(
                AgentRun.run, contract, id=f"{workflow.info().workflow_id}/{number}"
            )
        except ChildWorkflowError as error:  # it could not begin: a wrong contract, no such source
            return str(getattr(error.cause, "type", "failed"))
        return result.outcome.value
