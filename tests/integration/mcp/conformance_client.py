"""Our client as the conformance suite runs one: `conformance_client.py URL`.

It connects as a run does (pool, policy, egress decision), lists the tools, and calls each. Where a
person must log in, it does what the error says: logs in by the code behind `io-harness mcp login`, with
the suite's own page for a browser.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from pydantic import JsonValue

from io_harness.activities.egress import EVERYWHERE, GateJudge
from io_harness.activities.gate import Gate
from io_harness.activities.mcp.errors import McpFailure
from io_harness.activities.mcp.oauth.callback import listening
from io_harness.activities.mcp.oauth.login import log_in
from io_harness.activities.mcp.pool import Pool
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.sandbox.egress import Judge, Network, Session, Target, Verdict
from io_harness.sandbox.egress.decision import Ask
from io_harness.workflows.mcp_auth import Login, McpAuth
from io_harness.workflows.mcp_contract import HttpServer

from .rig import Rig, allowing_net

KNOWN: dict[str, dict[str, JsonValue]] = {"add_numbers": {"a": 5, "b": 3}}
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
WANTED_SCOPE = re.compile(r"set auth\.scope in the contract to '([^']*)'")
LOGINS = 3


@dataclass(frozen=True)
class LoopbackOpened:
    """The suite's servers call themselves localhost; a policy opens the loopback by address only."""

    judged: Judge

    def judge(self, target: Target) -> Verdict:
        return self.judged.judge(target)

    def opens(self, target: Target) -> tuple[Network, ...]:
        return EVERYWHERE


class SuiteNetwork(RunNetwork):
    def session(self, run_key: str, judge: Judge, ask: Ask | None = None) -> Session:
        return super().session(run_key, LoopbackOpened(judge), ask)


@dataclass
class Person:
    """Who does by hand what the harness asks for."""

    settings: Settings
    network: SuiteNetwork
    server: HttpServer
    rig: Rig
    logins: int = 0
    seen: list[str] = field(default_factory=list)

    async def helps(self, trouble: str) -> bool:
        """Whether there was something to be done about it."""
        auth = self.server.auth
        self.seen.append(trouble)
        if "mcp login" not in trouble or not isinstance(auth, Login) or self.logins == LOGINS:
            return False
        self.logins += 1
        if scope := WANTED_SCOPE.search(trouble):
            changed = auth.model_copy(update={"scope": scope[1]})
            self.server = self.server.model_copy(update={"auth": changed})
        await self.rig.pool.close_run(self.rig.run_key)
        await self._log_in()
        return True

    async def _log_in(self) -> None:
        auth = self.server.auth
        assert isinstance(auth, Login)
        session = self.network.session("login", GateJudge(Gate(self.rig.policy)))
        async with listening(0) as callback:

            async def browse(page: str) -> None:
                async with httpx2.AsyncClient() as browser:
                    answer = await browser.get(page)
                assert callback.take(answer.headers["location"]), answer.headers["location"]

            resolver = self.network.proxy.resolver
            await log_in(self.server, auth, self.settings, session, resolver, callback, browse)


def arguments_for(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """Some value for each argument that is asked for."""
    samples: dict[str, JsonValue] = {
        "string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {},
    }  # fmt: skip
    return {
        name: samples.get(schema["properties"][name].get("type", "string"), "x")
        for name in schema.get("required", [])
    }


async def auth_for(url: str) -> McpAuth | None:
    """As a contract's author would write it who knows what the suite says."""
    if not SCENARIO.startswith("auth/"):
        return None
    if "client-credentials" not in SCENARIO:
        registered = {"client_id": CONTEXT["client_id"]} if "client_id" in CONTEXT else {}
        if "client_secret" in CONTEXT:
            registered |= {"client_secret": "env:SECRET", "issuer": await issuer_of(url)}
        document = {} if registered else {"client_metadata_url": CLIENT_DOCUMENT}
        return Login.model_validate({**registered, **document})
    client = {"client_id": CONTEXT["client_id"], "issuer": await issuer_of(url)}
    if "private_key_pem" in CONTEXT:
        algorithm = CONTEXT.get("signing_algorithm", "ES256")
        how = {"kind": "private_key_jwt", "key": "env:SECRET", "algorithm": algorithm}
    else:
        how = {"kind": "client_credentials", "client_secret": "env:SECRET"}
    return HttpServer.model_validate({"id": "x", "url": url, "auth": client | how}).auth


async def issuer_of(url: str) -> str:
    """The suite doesn't say it; a contract must."""
    where = build_protected_resource_metadata_discovery_urls(None, url)[0]
    async with httpx2.AsyncClient() as client:
        return str((await client.get(where)).json()["authorization_servers"][0])


def calls_of(rig: Rig) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = CONTEXT.get("toolCalls") or [
        {"name": tool.tool, "arguments": KNOWN.get(tool.tool) or arguments_for(tool.input_schema)}
        for tool in rig.recorded.tools
    ]
    for call in calls:
        # One scenario wants to see what the client kept of another tool's schema.
        if call["arguments"].keys() == {"schema"}:
            others = [t for t in rig.recorded.tools if t.tool != call["name"]]
            call["arguments"] = {"schema": others[0].input_schema}
    return calls


async def run(rig: Rig, person: Person) -> None:
    while True:
        try:
            await rig.record(person.server)
            break
        except McpFailure as error:
            if not await person.helps(str(error)):
                raise
    for call in calls_of(rig):
        while True:
            seen = await rig.call(person.server, call["name"], **call["arguments"])
            if not (seen.is_error and await person.helps(seen.text)):
                break
        print(call["name"], seen.text[:300])


async def main(url: str) -> None:
    secret = CONTEXT.get("client_secret") or CONTEXT.get("private_key_pem") or ""
    os.environ["SECRET"] = secret
    where = urlsplit(url)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "copy")
        root.mkdir()
        data_dir = Path(folder, "data")
        await SnapshotStore(data_dir).ready()
        settings = Settings(data_dir=data_dir, credentials=frozenset({"SECRET"}))
        network = SuiteNetwork()
        pool = Pool(settings, network)
        rig = Rig(root, data_dir, pool, allowing_net(f"{where.hostname}:*"))
        server = HttpServer(
            id="suite",
            url=url,
            connect_seconds=20,
            call_seconds=20,
            questions="defaults",
            auth=await auth_for(url),
        )
        try:
            await run(rig, Person(settings, network, server, rig))
        finally:
            await pool.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
