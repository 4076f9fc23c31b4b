"""A typed function of yours as a tool of the agent.

The docstring tells the model what it does; the policy is asked before it runs, here about reaching
`tickets.example:443`. A contract's policy must allow that host, or a human is asked or it is denied.
"""

import asyncio

from pydantic import BaseModel
from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from io_harness.activities.tools.user import tool
from io_harness.plugin import HarnessPlugin, harness_worker


class Ticket(BaseModel):
    number: int
    title: str


TICKETS = {7: Ticket(number=7, title="add() subtracts")}
"""Stands for your tracker."""


@tool(effect="read", act="net", target="tickets.example:443")
async def ticket(number: int) -> Ticket:
    """Look up a ticket of the tracker by its number."""
    return TICKETS[number]


POLICY = {
    "preset": "unattended",
    "layers": [
        {
            "name": "tracker",
            "rules": [{"effect": "allow", "act": "net", "target": "tickets.example:443"}],
        }
    ],
}
"""For contracts whose agent may ask the tracker."""


async def main() -> None:
    client = await Client.connect(
        **ClientConfig.load_client_connect_config(), plugins=[HarnessPlugin(tools=[ticket])]
    )
    await harness_worker(client).run()


if __name__ == "__main__":
    asyncio.run(main())
