"""A tool call in a process of its own, so that a test can kill it at any moment.

Usage: python victim.py DATA_DIR RUN_KEY BASE TOOL ARGUMENTS_JSON; prints the head.
"""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.activities.workspace import open_copy
from tests.unit.tools.conftest import make_context, make_contract


async def main(data_dir: Path, run_key: str, base: str, tool: str, arguments: str) -> None:
    store = SnapshotStore(data_dir)
    settings = Settings(data_dir=data_dir)
    given = json.loads(arguments)
    async with open_copy(store, settings, run_key, make_contract(), base) as copy:
        context = make_context(copy.root, data_dir, tool, given)
        context = replace(context, begin_change=copy.begin_change)
        print("begun", flush=True)
        await ToolRegistry().get(tool).call(given, context)
        head, _ = await copy.snapshot(f"1: {tool}")
    print(head, flush=True)


if __name__ == "__main__":
    _, data_dir, run_key, base, tool, arguments = sys.argv
    asyncio.run(main(Path(data_dir), run_key, base, tool, arguments))
