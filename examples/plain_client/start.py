"""Start a run from a Temporal client and wait for its result.

The worker runs elsewhere (`io-harness worker`). This process needs no key of a model.
"""

import asyncio
import sys
import uuid
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig

from io_harness import TASK_QUEUE
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import CommandCheck, DirectorySource, Model, TaskContract
from io_harness.workflows.result import RunResult


async def fix(client: Client, contract: TaskContract, task_queue: str = TASK_QUEUE) -> RunResult:
    """Run `contract` and say how it goes."""
    run = await client.start_workflow(
        AgentRun.run,
        contract.model_dump(mode="json"),
        id=f"fix-{uuid.uuid4().hex[:8]}",
        task_queue=task_queue,
    )
    print(f"started {run.id}")
    done = asyncio.ensure_future(run.result())
    while not done.done():
        await asyncio.wait({done}, timeout=1)
        status = await run.query(AgentRun.status)
        print(f"{status.state}: step {status.step}, {status.spend.usd} USD")
    return done.result()


async def main(path: str, goal: str, verify: str) -> None:
    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), data_converter=pydantic_data_converter
    )
    contract = TaskContract(
        goal=goal,
        workspace=DirectorySource(path=str(Path(path).absolute())),
        verification=CommandCheck(run=verify),
        model=Model(provider="anthropic", name="claude-sonnet-5-5"),
        policy="unattended",
    )
    result = await fix(client, contract)
    print(result.outcome, result.reason)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
