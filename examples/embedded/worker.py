"""The harness in a worker of your own: one process, one queue, your workflows beside ours."""

import asyncio
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from io_harness.plugin import HarnessPlugin

from .workflow import Greeting


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}."


def make_worker(client: Client, task_queue: str) -> Worker:
    """A client that was connected with the plugin brings it to its workers."""
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Greeting],
        activities=[greet],
        graceful_shutdown_timeout=timedelta(seconds=10),
    )


async def main() -> None:
    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), plugins=[HarnessPlugin()]
    )
    await make_worker(client, "shop").run()


if __name__ == "__main__":
    asyncio.run(main())
