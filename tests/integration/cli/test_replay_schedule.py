"""`replay` and `schedule`, on the embedded server."""

import asyncio
import re
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue
from temporalio import workflow
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from io_harness.server import running_server

from .conftest import Recorded, Shell
from .test_commands import WRITE


def contract(shell: Shell, recorded: Recorded) -> str:
    fields = {
        "goal": "greet",
        "workspace": {"kind": "directory", "path": str(shell.cwd)},
        "verification": {"kind": "command", "run": "test -f new.txt"},
        "policy": "unattended",
        "model": {"provider": "replay", "name": "r", "base_url": recorded(WRITE).partition("/")[2]},
    }
    file = shell.cwd.parent / "task.yaml"
    file.write_text(yaml.safe_dump(fields))
    return str(file)


@workflow.defn(name="AgentRun")
class Other:
    """A run as another version of the code might have made it."""

    @workflow.run
    async def run(self, contract: JsonValue) -> None:
        await asyncio.sleep(0.01)


async def connect(home: Path) -> Client:
    server = running_server(home)
    assert server is not None
    return await Client.connect(server.address, data_converter=pydantic_data_converter)


def test_a_run_of_this_version_replays(shared: Shell, recorded: Recorded) -> None:
    ran = shared.run("run", contract(shared, recorded), "--id", "replayed", "--json")
    assert ran.code == 0, ran.err
    done = shared.run("replay", "replayed")
    assert (done.code, done.out.startswith("ok ")) == (0, True), done.out + done.err
    assert shared.run("replay", "nowhere").code == 2


async def test_a_run_of_other_code_does_not_replay(shared: Shell) -> None:
    client = await connect(shared.home)
    async with Worker(
        client, task_queue="other", workflows=[Other], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        given = {
            "goal": "x",
            "workspace": {"kind": "directory", "path": "/"},
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "r", "base_url": "/r"},
        }
        await client.execute_workflow(Other.run, given, id="other", task_queue="other")
    done = await asyncio.to_thread(shared.run, "replay", "other")
    assert done.code == 1, done.out + done.err
    assert done.out.startswith("FAIL")
    assert "Nondeterminism" in done.out


@pytest.mark.timeout(240)
async def test_a_schedule_starts_runs(shared: Shell, recorded: Recorded) -> None:
    run, file = shared.run, contract(shared, recorded)
    create = ("schedule", "create", "nightly", file)
    made = await asyncio.to_thread(run, *create, "--cron", "0 2 * * *", "--time-zone", "Asia/Tokyo")
    assert made.code == 0, made.err
    assert "17:00 UTC" in made.err
    again = await asyncio.to_thread(run, *create, "--cron", "0 2 * * *")
    assert (again.code, "already" in again.err) == (2, True)

    client = await connect(shared.home)
    await client.get_schedule_handle("nightly").trigger()
    while not (
        runs := [w.id async for w in client.list_workflows("WorkflowType = 'AgentRun'")
                 if w.id.startswith("nightly-")]
    ):  # fmt: skip
        await asyncio.sleep(0.2)
    assert re.fullmatch(r"nightly-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", runs[0])
    ended = await asyncio.to_thread(run, "watch", runs[0])
    assert ended.code == 0, ended.out + ended.err
    assert (shared.cwd / "new.txt").read_text() == "hello\n"

    listed = (await asyncio.to_thread(run, "schedule", "list", "--json")).json
    assert (listed["name"], listed["last"]) == ("nightly", runs[0])
    assert (await asyncio.to_thread(run, "schedule", "delete", "nightly")).code == 0
    gone = await asyncio.to_thread(run, "schedule", "delete", "nightly")
    assert (gone.code, "no schedule 'nightly'" in gone.err) == (2, True)


def test_a_schedule_that_can_not_be_is_refused(
    shared: Shell, shell: Shell, recorded: Recorded, tmp_path: Path
) -> None:
    file = contract(shared, recorded)
    bad = shared.run("schedule", "create", "x", file, "--cron", "at night")
    assert (bad.code, "--cron" in bad.err, "Traceback" in bad.err) == (2, True, False), bad.err
    shell.home = tmp_path / "nobody"
    alone = shell.run("schedule", "create", "x", file, "--cron", "0 2 * * *")
    assert (alone.code, "io-harness up" in alone.err) == (2, True)
