"""A run of many turns under frequent continue-as-new, as one line of a table:

    python -m tests.crash.endurance [TURNS]

By default 1,000 turns, each a small edit, on a server that suggests continue-as-new after 100 events.
The exit code is 1 if an edit is lost or doubled, or what is carried passes 1 MB.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from temporalio.client import Client

from io_harness.plugin import TASK_QUEUE, harness_worker
from io_harness.runs import start
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome
from tests.scripted import call, turn, write_script

from .servers import ServerProcess, connected

SUGGEST_AT_EVENTS = 100
CARRIED_BYTES = 1_000_000


def contract(folder: Path, turns: int) -> TaskContract:
    source = folder / "source"
    source.mkdir()
    (source / "count.txt").write_text("0\n")
    edits = [
        turn(call("edit_file", path="count.txt", old=f"{i}\n", new=f"{i + 1}\n"))
        for i in range(turns)
    ]
    script = write_script(folder / "script.yaml", *edits, turn(call("finish", summary="counted")))
    return TaskContract.model_validate(
        {
            "goal": "Count.",
            "workspace": {"kind": "directory", "path": str(source)},
            "verification": {"kind": "file_equals", "path": "count.txt", "text": f"{turns}\n"},
            "policy": "unattended",
            "model": {"provider": "replay", "name": "script", "base_url": script},
            "budget": {"steps": turns + 1, "tool_calls": turns + 1, "working_seconds": 100_000},
        }
    )


async def carried(client: Client, workflow_id: str, run_id: str | None) -> list[int]:
    """Bytes of the input of each continuation."""
    sizes: list[int] = []
    while run_id:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        last = (await handle.fetch_history()).events[-1]
        continued = last.workflow_execution_continued_as_new_event_attributes
        run_id = continued.new_execution_run_id
        if run_id:
            sizes.append(sum(len(payload.data) for payload in continued.input.payloads))
    return sizes


async def main(turns: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = ServerProcess(folder / "server", SUGGEST_AT_EVENTS)
        server.start()
        try:
            client = await connected(server.address, folder / "data")
            begun = time.monotonic()
            async with harness_worker(client, task_queue=TASK_QUEUE):
                run = await start(client, contract(folder, turns))
                result = await run.result()
            seconds = time.monotonic() - begun
            sizes = await carried(client, run.id, run.first_execution_run_id)
        finally:
            server.kill()
        counted = (folder / "source" / "count.txt").read_text()
    print("| turns | outcome | executions | largest carried, bytes | seconds |")
    print("| ---: | --- | ---: | ---: | ---: |")
    print(
        f"| {result.spend.steps - 1} | {result.outcome} | {len(sizes) + 1} | {max(sizes):,} | "
        f"{seconds:.0f} |"
    )
    right = result.outcome is Outcome.SUCCESS and counted == f"{turns}\n"
    return 0 if right and max(sizes) < CARRIED_BYTES else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)))
