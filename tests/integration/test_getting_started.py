"""docs/getting-started.md, executed as a newcomer would, but with a recorded model."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.scripted import call, turn, write_script

TEXT = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
CONTRACT = re.findall(r"```yaml\n(# task.yaml\n.*?)```", TEXT, re.DOTALL)[0]
SCHEDULE = re.findall(r"```schedule\n(.*?)```", TEXT, re.DOTALL)[0]
MODEL = "model: {provider: anthropic, name: claude-sonnet-5-5}"
PROGRAMS = Path(sys.executable).parent


@pytest.mark.timeout(300)  # eight processes, each with a server to start
async def test_the_page_as_a_newcomer_runs_it(tmp_path: Path) -> None:
    script = write_script(
        tmp_path / "script.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="add adds now")),
    )
    assert CONTRACT.count(MODEL) == 1
    recorded = CONTRACT.replace(MODEL, f"model: {{provider: replay, name: x, base_url: {script}}}")
    (tmp_path / "task.yaml").write_text(recorded)
    make, *rest = SHELL
    whole = "\n".join(["set -e", make, "cp ../task.yaml .", *rest, "cat calc.py"])
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEMPORAL_", "IO_HARNESS_"))
    }
    environment |= {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        "IO_HARNESS_DATA": str(tmp_path / "data"),
    }
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", whole, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out = (await process.communicate())[0].decode()
    assert process.returncode == 0, out
    assert "calc.py | 2 +-" in out
    assert out.rstrip().endswith("return a + b")


async def test_the_schedule(address: str, client: Client, tmp_path: Path) -> None:
    file = tmp_path / "contract.json"
    file.write_text(json.dumps({"goal": "x"}))
    words = shlex.split(SCHEDULE.replace("contract.json", str(file)))
    process = await asyncio.create_subprocess_exec(
        str(PROGRAMS / words[0]), *words[1:], "--address", address
    )
    assert await process.wait() == 0
    handle = client.get_schedule_handle("nightly")
    try:
        assert "AgentRun" in str((await handle.describe()).schedule.action)
    finally:
        await handle.delete()
