"""A run every night, by a schedule of Temporal's. `io-harness schedule create` does the same."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig

from io_harness import TASK_QUEUE
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import Branch, CommandCheck, DirectorySource, Model, TaskContract


def nightly(directory: str) -> TaskContract:
    """Lands on a branch of its own: nobody is there at night to look at it first."""
    return TaskContract(
        goal="Run the linter and mend what it finds, one kind of finding only.",
        workspace=DirectorySource(path=directory),
        verification=CommandCheck(run="make lint test", protect=("tests", "Makefile")),
        model=Model(provider="anthropic", name="claude-sonnet-5-5"),
        policy="unattended",
        landing=Branch(),
    )


async def create(
    client: Client, name: str, contract: TaskContract, task_queue: str = TASK_QUEUE
) -> ScheduleHandle:
    return await client.create_schedule(
        name,
        Schedule(
            ScheduleActionStartWorkflow(
                AgentRun.run, contract.model_dump(mode="json"), id=name, task_queue=task_queue
            ),
            ScheduleSpec(cron_expressions=["0 2 * * *"], time_zone_name="Europe/Zurich"),
            policy=SchedulePolicy(
                overlap=ScheduleOverlapPolicy.SKIP,  # a run that waits for a human holds the next
                catchup_window=timedelta(days=1),
            ),
        ),
    )


async def main(directory: str) -> None:
    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), data_converter=pydantic_data_converter
    )
    contract = nightly(str(Path(directory).absolute()))
    schedule = await create(client, "nightly", contract)
    print(f"next: {(await schedule.describe()).info.next_action_times[0]}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
