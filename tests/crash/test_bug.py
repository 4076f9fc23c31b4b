"""A bug in workflow code: seen by who looks, and cured by the build that mends it."""

import asyncio
import os
import subprocess
import sys
import uuid
from pathlib import Path

from temporalio.client import Client

from io_harness.plugin import harness_worker
from io_harness.stuck import stuck_runs
from io_harness.workflows.result import Outcome, RunResult
from tests.integration.conftest import FIXED, Handle

from .conftest import address, client, data_dir
from .scene import contract

__all__ = ["address", "client", "data_dir"]


def command(module: str, address: str, data_dir: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "TEMPORAL_ADDRESS": address, "IO_HARNESS_DATA": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_a_bug_is_told_and_a_mended_build_goes_on(
    client: Client, address: str, data_dir: Path, tmp_path: Path
) -> None:
    queue = f"bug-{uuid.uuid4().hex[:6]}"
    given = {**contract(tmp_path), "policy": "unattended"}
    run: Handle = await client.start_workflow(
        "AgentRun", given, id=queue, task_queue=queue, result_type=RunResult
    )
    broken = command("tests.crash.broken", address, data_dir, "worker", "--task-queue", queue)
    try:
        while queue not in {each.run for each in await stuck_runs(client)}:
            await asyncio.sleep(0.2)
        doctor = command("io_harness", address, data_dir, "doctor")
        told, _ = await asyncio.to_thread(doctor.communicate, timeout=100)
    finally:
        broken.terminate()
        _, logged = await asyncio.to_thread(broken.communicate, timeout=60)
    assert doctor.returncode == 1
    line = next(line for line in told.splitlines() if queue in line)
    assert line.startswith("FAIL workflow task")
    assert "a bug of this build" in line
    assert "RuntimeError: a bug of this build" in logged
    async with harness_worker(client, task_queue=queue):
        result = await run.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert (tmp_path / "source" / "calc.py").read_text() == FIXED
    assert queue not in {each.run for each in await stuck_runs(client)}
