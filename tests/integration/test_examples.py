"""The examples do what they say, with a recorded model."""

import asyncio
import json
import re
import shlex
import sys
import uuid
from pathlib import Path

import pytest
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import GrpcCompression
from temporalio.worker import Worker

from examples.child.workflow import FixAll
from examples.embedded.worker import make_worker
from examples.embedded.workflow import Greeting
from examples.own_tool.worker import POLICY, ticket
from examples.plain_client.start import fix
from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from tests.scripted import Turn, call, turn, write_script

from .conftest import FIXED, VERIFY, Repo

TEMPORAL = Path(sys.executable).parent / "temporal"
EXAMPLES = Path(__file__).parents[2] / "examples"
FIX = (
    turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
    turn(call("finish", summary="add adds now")),
)


def contract(repo: Repo, script: Path, *turns: Turn, **more: JsonValue) -> dict[str, JsonValue]:
    whole: dict[str, JsonValue] = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(repo.path)},
        "verification": VERIFY,  # type: ignore[dict-item]
        "policy": "unattended",
        "model": {"provider": "replay", "name": "x", "base_url": write_script(script, *turns)},
        **more,
    }
    return TaskContract.model_validate(whole).model_dump(mode="json")


async def test_plain_client(
    address: str, worker: None, repo: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    whole = contract(repo, tmp_path / "s.yaml", *FIX)
    result = await fix(client, TaskContract.model_validate(whole))
    assert result.outcome == "success", result.reason
    assert repo.read("calc.py") == FIXED
    assert "success: step 2" in capsys.readouterr().out


async def test_embedded_and_child(client: Client, repo: Repo, tmp_path: Path) -> None:
    queue = f"shop-{uuid.uuid4().hex[:8]}"
    missing: JsonValue = {"kind": "directory", "path": str(tmp_path / "nowhere")}
    async with make_worker(client, queue):
        assert (
            await client.execute_workflow(
                Greeting.run, "world", id=f"{queue}-hello", task_queue=queue
            )
            == "Hello, world."
        )
        run = await client.execute_workflow(
            AgentRun.run, contract(repo, tmp_path / "s.yaml", *FIX), id=queue, task_queue=queue
        )
        assert run.outcome == "success", run.reason
    repo.git("checkout", "-q", ".")
    async with Worker(client, task_queue=f"{queue}-all", workflows=[FixAll]):
        both: list[JsonValue] = [
            contract(repo, tmp_path / "s.yaml", *FIX),
            contract(repo, tmp_path / "t.yaml", *FIX) | {"workspace": missing},
        ]
        done = await client.execute_workflow(
            FixAll.run, both, id=f"{queue}-all", task_queue=f"{queue}-all"
        )
    assert done == ["success", "SourceNotFound"]
    assert repo.read("calc.py") == FIXED


async def test_own_tool(address: str, data_dir: Path, repo: Repo, tmp_path: Path) -> None:
    plugin = HarnessPlugin(Settings(data_dir=data_dir), tools=[ticket])
    client = await Client.connect(address, plugins=[plugin], grpc_compression=GrpcCompression.NONE)
    look = turn(call("ticket", number=7, shows=("add() subtracts",)))
    refused = turn(call("ticket", number=7, fails=True, shows=("tickets.example",)))
    queue = f"tracker-{uuid.uuid4().hex[:8]}"
    async with harness_worker(client, task_queue=queue):
        for number, (policy, turns) in enumerate(
            [(POLICY, (look, *FIX)), ("unattended", (refused, *FIX))]
        ):
            result = await client.execute_workflow(
                AgentRun.run,
                contract(repo, tmp_path / "s.yaml", *turns, policy=policy),  # type: ignore[arg-type]
                id=f"{queue}-{number}",
                task_queue=queue,
            )
            assert result.outcome == "success", result.reason
            repo.git("checkout", "-q", ".")


async def temporal(address: str, line: str) -> str:
    words = shlex.split(line)
    assert words[0] == "temporal"
    process = await asyncio.create_subprocess_exec(
        str(TEMPORAL), *words[1:], "--address", address, "--output", "json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    return out.decode()


async def test_plain_json(address: str, worker: None, repo: Repo, tmp_path: Path) -> None:
    readme = (EXAMPLES / "plain_json" / "README.md").read_text()
    lines = re.findall(r"^temporal .*$", readme, re.MULTILINE)
    start, status, asking, decide, result = lines
    given = json.loads((EXAMPLES / "plain_json" / "contract.json").read_text())
    TaskContract.model_validate(given)
    given["workspace"]["path"] = str(repo.path)
    given["model"] = contract(repo, tmp_path / "s.yaml", *FIX)["model"]
    file = tmp_path / "contract.json"
    file.write_text(json.dumps(given))
    run = f"json-{uuid.uuid4().hex[:8]}"

    async def do(line: str) -> str:
        return await temporal(
            address, line.replace("fix-calc", run).replace("contract.json", str(file))
        )

    await do(start)
    assert '"goal"' in await do(status)
    while not (found := re.search(r'"id": *"([^"]+)"', await do(asking))):
        await asyncio.sleep(0.2)
    assert repo.read("calc.py") != FIXED
    await do(decide.replace("ID", found[1]))
    assert '"outcome": "success"' in await do(result)
    assert repo.read("calc.py") == FIXED
