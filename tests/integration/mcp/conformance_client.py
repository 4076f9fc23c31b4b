"""Our client as the conformance suite runs one: `conformance_client.py URL`.

It connects as a run does (pool, policy, egress decision), lists the tools, and calls each.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import JsonValue

from io_harness.activities.mcp.pool import Pool
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.mcp_contract import HttpServer

from .rig import Rig, allowing_net

KNOWN: dict[str, dict[str, JsonValue]] = {"add_numbers": {"a": 5, "b": 3}}


def arguments_for(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """Some value for each argument that is asked for."""
    samples: dict[str, JsonValue] = {
        "string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {},
    }  # fmt: skip
    return {
        name: samples.get(schema["properties"][name].get("type", "string"), "x")
        for name in schema.get("required", [])
    }


async def main(url: str) -> None:
    where = urlsplit(url)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "copy")
        root.mkdir()
        data_dir = Path(folder, "data")
        await SnapshotStore(data_dir).ready()
        pool = Pool(Settings(data_dir=data_dir), RunNetwork())
        # The suite's server says localhost; the policy opens the loopback for that name.
        policy = allowing_net(f"{where.hostname}:{where.port}", "127.0.0.1:1", "[::1]:1")
        rig = Rig(root, data_dir, pool, policy)
        server = HttpServer(id="suite", url=url, connect_seconds=20, call_seconds=20)
        try:
            await rig.record(server)
            calls = context.get("toolCalls") or [
                {
                    "name": tool.tool,
                    "arguments": KNOWN.get(tool.tool) or arguments_for(tool.input_schema),
                }
                for tool in rig.recorded.tools
            ]
            for call in calls:
                # One scenario wants to see what the client kept of another tool's schema.
                if call["arguments"].keys() == {"schema"}:
                    others = [t for t in rig.recorded.tools if t.tool != call["name"]]
                    call["arguments"] = {"schema": others[0].input_schema}
            for call in calls:
                seen = await rig.call(server, call["name"], **call["arguments"])
                print(call["name"], seen.text[:300])
        finally:
            await pool.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
