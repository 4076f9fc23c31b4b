"""The sandboxed command and the verification in a worker of your own, without agent and plugin."""

import asyncio

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from io_harness.plugin import harness_activities

from .workflow import Regenerate


def make_worker(client: Client, task_queue: str) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Regenerate],
        activities=harness_activities(),
    )


async def main() -> None:
    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), data_converter=pydantic_data_converter
    )
    await make_worker(client, "generators").run()


if __name__ == "__main__":
    asyncio.run(main())
