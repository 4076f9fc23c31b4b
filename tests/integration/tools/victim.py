"""A tool call in a process of its own, so that a test can kill it at any moment."""

import asyncio
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from pydantic import JsonValue

from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.activities.workspace import open_copy
from tests.unit.tools.conftest import make_context, make_contract


def use_tool(
    told: Connection, data_dir: Path, base: str, tool: str, arguments: dict[str, JsonValue]
) -> None:
    """Tells `begun` when the call begins, and the head in the end."""
    asyncio.run(_use_tool(told, data_dir, base, tool, arguments))


async def _use_tool(
    told: Connection, data_dir: Path, base: str, tool: str, arguments: dict[str, JsonValue]
) -> None:
    store = SnapshotStore(data_dir)
    settings = Settings(data_dir=data_dir)
    async with open_copy(store, settings, "run", make_contract(), base) as copy:
        context = make_context(copy.root, data_dir, tool, arguments)
        context = replace(context, begin_change=copy.begin_change)
        told.send("begun")
        await ToolRegistry().get(tool).call(arguments, context)
        head, _ = await copy.snapshot(f"1: {tool}")
    told.send(head)
