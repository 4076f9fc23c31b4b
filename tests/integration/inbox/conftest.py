"""The inbox over the tests' server, on a loopback port."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from temporalio.client import Client

from io_harness.cli.web import listening
from io_harness.inbox.app import InboxApp
from io_harness.inbox.guard import Secrets


@dataclass(frozen=True)
class Site:
    address: str
    secrets: Secrets

    @property
    def login(self) -> str:
        return f"{self.address}/login?token={self.secrets.token}"

    def request(self, run: str, request: str) -> str:
        return f"{self.address}/requests/{request}/{run}"


@pytest.fixture
async def site(client: Client, worker: None) -> AsyncIterator[Site]:
    secrets = Secrets()
    app = InboxApp(client, secrets, by="anna", ui=lambda run: f"http://ui.example/{run}")
    listener, address = listening(0)
    server = uvicorn.Server(uvicorn.Config(app.asgi(), log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    yield Site(address, secrets)
    server.should_exit = True
    await serving


@pytest.fixture
async def person(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has signed in; redirects are not followed."""
    async with httpx.AsyncClient(base_url=site.address, timeout=60, trust_env=False) as person:
        signed_in = await person.get(site.login)
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
        yield person


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert found, page
    return found[1]
