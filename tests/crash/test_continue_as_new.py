"""Continue-as-new at nearly every turn, with decisions that arrive at any moment: none is lost, none
counts twice, and the result is what it is without."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from io_harness.plugin import TASK_QUEUE, harness_worker
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.result import Outcome
from tests.integration.conftest import BROKEN, FIXED, TEST, VERIFY, Handle
from tests.integration.test_long_run import chain
from tests.scripted import call, turn, write_script

from .servers import ServerProcess, connected

ASKS = 12


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server that suggests continue-as-new after a few events, and its worker."""
    server = ServerProcess(tmp_path / "server")
    server.start()
    try:
        client = await connected(server.address, tmp_path / "data")
        async with harness_worker(client):
            yield client
    finally:
        server.kill()


async def start(client: Client, folder: Path) -> Handle:
    """Each of the edits asks; the last one mends the bug."""
    source = folder / "source"
    source.mkdir()
    (source / "calc.py").write_text(BROKEN)
    (source / "test_calc.py").write_text(TEST)
    (source / ".gitignore").write_text("__pycache__/\n")
    notes = [
        turn(call("write_file", path=f"note{i}.txt", content=f"note {i}\n"))
        for i in range(ASKS - 1)
    ]
    script = write_script(
        folder / "script.yaml",
        *notes,
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="done")),
    )
    contract = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(source)},
        "verification": VERIFY,
        "policy": {
            "preset": "unattended",
            "layers": [
                {"name": "asks", "rules": [{"effect": "ask", "act": "write", "target": "**"}]}
            ],
        },
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }
    run_id = f"hasty-{uuid.uuid4().hex[:8]}"
    return await client.start_workflow(AgentRun.run, contract, id=run_id, task_queue=TASK_QUEUE)


async def noise(run: Handle, moments: random.Random) -> int:
    """Decisions that name no request of this run, at random moments, until they are cancelled."""
    sent = 0
    try:
        while True:
            unknown = Decision(request=f"0.0-{sent:012}", verdict="deny")
            await run.signal(AgentRun.decide, unknown)
            sent += 1
            await asyncio.sleep(moments.uniform(0, 0.05))
    except asyncio.CancelledError:
        return sent


@pytest.mark.timeout(180)
async def test_no_decision_is_lost_or_counted_twice(hasty: Client, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    run = await start(hasty, tmp_path)
    sending = asyncio.create_task(noise(run, random.Random(seed)))
    answered: set[str] = set()
    end = asyncio.create_task(run.result())
    while not end.done():
        for pending in await run.query(AgentRun.pending_approvals):
            if pending.id not in answered:
                answered.add(pending.id)
                await run.signal(AgentRun.decide, Decision(request=pending.id, verdict="approve"))
                # Says the opposite, and must not count.
                await run.signal(AgentRun.decide, Decision(request=pending.id, verdict="deny"))
        await asyncio.sleep(0.02)
    sending.cancel()
    result = await end
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert len(answered) == ASKS
    assert result.spend.steps == ASKS + 1
    assert result.spend.tool_calls == ASKS + 1
    assert (tmp_path / "source" / "calc.py").read_text() == FIXED
    for index in range(ASKS - 1):
        assert (tmp_path / "source" / f"note{index}.txt").read_text() == f"note {index}\n"
    executions = await chain(hasty, run)
    print(f"{len(executions)} executions, events and bytes: {executions}")
    assert len(executions) >= 3, "the server's suggestion was not followed"
    so_far = await run.query(AgentRun.result_so_far)
    assert so_far is not None
    applied = [d.decision.request for d in so_far.decisions if d.effect == "applied"]
    assert len(applied) == len(set(applied))
