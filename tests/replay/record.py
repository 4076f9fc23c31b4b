"""Makes the stored histories anew: `python -m tests.replay.record`.

Each is one capability of a run. Run this only after a change of the workflow's code that is meant to
break running ones; otherwise the stored histories are the proof that it doesn't.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.service import GrpcCompression

from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.server import embedded_server
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.attributes import NAMES
from io_harness.workflows.contract import TaskContract
from tests.crash.test_kill_worker import demo_contract, project
from tests.integration.conftest import BROKEN, TEST, VERIFY, Handle
from tests.scripted import Turn, call, turn, write_script

HISTORIES = Path(__file__).parent / "histories"


@asynccontextmanager
async def harness(data: Path) -> AsyncIterator[Client]:
    async with embedded_server(data / "server", NAMES) as held:
        client = await Client.connect(
            held.server.address,
            plugins=[HarnessPlugin(Settings(data_dir=data))],
            grpc_compression=GrpcCompression.NONE,
        )
        async with harness_worker(client):
            yield client


def source(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text(BROKEN)
    (folder / "test_calc.py").write_text(TEST)
    (folder / ".gitignore").write_text("__pycache__/\n")
    return folder


async def start(client: Client, folder: Path, name: str, *turns: Turn, **more: object) -> Handle:
    script = write_script(folder / f"{name}.yaml", *turns)
    contract: dict[str, object] = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(source(folder / name))},
        "verification": VERIFY,
        "policy": "unattended",
        "model": {"provider": "replay", "name": "script", "base_url": script},
        **more,
    }
    valid = TaskContract.model_validate(contract).model_dump(mode="json")
    return await client.start_workflow(AgentRun.run, valid, id=name, task_queue=TASK_QUEUE)


def fix() -> Turn:
    return turn(call("edit_file", path="calc.py", old="a - b", new="a + b"))


def finish() -> Turn:
    return turn(call("finish", summary="add adds now"))


async def approval(client: Client, folder: Path) -> Handle:
    run = await start(client, folder, "approval", fix(), finish(), policy="careful")
    while not (pending := await run.query(AgentRun.pending_approvals)):
        await asyncio.sleep(0.05)
    await run.signal(AgentRun.decide, Decision(request=pending[0].id, verdict="approve"))
    return run


async def budget(client: Client, folder: Path) -> Handle:
    return await start(client, folder, "budget", fix(), finish(), budget={"steps": 1})


async def cancelled(client: Client, folder: Path) -> Handle:
    sleep = turn(call("run_command", command="sleep 60"))
    run = await start(client, folder, "cancelled", fix(), sleep)
    while (await run.query(AgentRun.status)).step < 2:
        await asyncio.sleep(0.05)
    await run.cancel()
    return run


async def continued(client: Client, folder: Path) -> Handle:
    writes = [turn(call("write_file", path=f"n{i}.txt", content=f"{i}\n")) for i in range(180)]
    limits = {"steps": 400, "tool_calls": 2_000}
    return await start(client, folder, "continued", *writes, fix(), finish(), budget=limits)


async def demo(client: Client, folder: Path) -> Handle:
    contract = demo_contract(project(folder / "demo")).model_dump(mode="json")
    return await client.start_workflow(AgentRun.run, contract, id="demo", task_queue=TASK_QUEUE)


async def write(client: Client, run: Handle, name: str) -> None:
    """Store the last execution of the run's chain, without what tells of the host."""
    result = await run.result()
    history = await client.get_workflow_handle(run.id).fetch_history()
    text = re.sub(r'"identity": "[^"]*"', '"identity": "worker"', history.to_json())
    text = re.sub(r'"\d+@[^"]*"', '"sticky"', text)
    (HISTORIES / f"{name}.json").write_text(json.dumps(json.loads(text), indent=1) + "\n")
    print(f"{name}: {result.outcome}, {len(history.events)} events")


async def main() -> None:
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with harness(Path(folder) / "data") as client:
            for make in (demo, approval, budget, cancelled, continued):
                run = await make(client, Path(folder) / "sources")
                await write(client, run, make.__name__)


if __name__ == "__main__":
    asyncio.run(main())
