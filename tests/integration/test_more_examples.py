"""The examples from outside of a worker: a web hook, a schedule, a client in TypeScript."""

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import httpx
import pytest
from temporalio.client import Client, WorkflowHandle

from examples.nightly.schedule import create, nightly
from examples.web_hook.app import SIGNATURE, make_app, sign
from io_harness.workflows.contract import CommandCheck, TaskContract
from io_harness.workflows.result import Landed, Outcome, RunResult
from tests.scripted import turn

from .conftest import FIXED, VERIFY, Repo, Start
from .test_approvals import finish, fix, pending
from .test_examples import EXAMPLES, FIX, contract

SECRET = b"only the chat and we know it"


async def test_web_hook(client: Client, start: Start, repo: Repo) -> None:
    run = await start(turn(fix()), turn(finish()), policy="careful", verification={"kind": "none"})
    (asked,) = await pending(run)
    app = make_app(client, SECRET)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://hook.example") as chat:

        async def press(body: object, secret: bytes = SECRET) -> int:
            content = json.dumps(body).encode()
            headers = {SIGNATURE: sign(secret, content)}
            answer = await chat.post("/decisions", content=content, headers=headers)
            return answer.status_code

        decision = {"request": asked.id, "verdict": "approve", "by": "anna in the chat"}
        assert await press({"run": run.id, "decision": decision}, b"a guess") == 401
        assert await press({"run": run.id, "decision": {**decision, "verdict": "maybe"}}) == 422
        assert await press({"run": "nowhere", "decision": decision}) == 409
        assert await press({"run": run.id, "decision": decision}) == 204
        assert await press({"run": run.id, "decision": {**decision, "verdict": "deny"}}) == 409
    assert (await run.result()).outcome is Outcome.FINISHED


async def test_nightly(client: Client, worker: None, repo: Repo, tmp_path: Path) -> None:
    given = nightly(str(repo.path))
    assert isinstance(given.verification, CommandCheck)
    whole = contract(repo, tmp_path / "s.yaml", *FIX) | {"landing": given.landing.model_dump()}
    name = f"nightly-{uuid.uuid4().hex[:8]}"
    schedule = await create(client, name, TaskContract.model_validate(whole))
    try:
        described = await schedule.describe()
        assert described.info.next_action_times[0].minute == 0
        await schedule.trigger()
        while not (started := (await schedule.describe()).info.recent_actions):
            await asyncio.sleep(0.1)
        action = started[0].action
        run: WorkflowHandle[object, RunResult] = client.get_workflow_handle(
            getattr(action, "workflow_id", ""), result_type=RunResult
        )
        result = await run.result()
    finally:
        await schedule.delete()
    assert isinstance(result.landing, Landed), result.reason
    assert repo.read("calc.py") != FIXED
    assert repo.git("show", f"{result.landing.where}:calc.py") == FIXED.strip()


def built() -> Path:
    """The TypeScript example, installed and compiled once into a cache outside of the repository."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "io-harness-tests" / "typescript-example"
    root.mkdir(parents=True, exist_ok=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def do(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [npm, *command], cwd=root, env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("package.json", "tsconfig.json", "start.ts"):
            shutil.copy(EXAMPLES / "typescript" / name, root / name)
        wanted, done_for = (root / "package.json").read_text(), root / "installed"
        if not done_for.exists() or done_for.read_text() != wanted:
            installed = do("install", "--no-audit", "--no-fund", "--ignore-scripts")
            if installed.returncode:
                pytest.skip(f"npm can't install Temporal's client: {installed.stderr[-500:]}")
            done_for.write_text(wanted)
        for script in ("types", "build"):
            done = do("run", script)
            assert done.returncode == 0, done.stdout + done.stderr
    return root / "dist" / "start.js"


@pytest.mark.timeout(300)
async def test_typescript(address: str, worker: None, repo: Repo, tmp_path: Path) -> None:
    script = await asyncio.to_thread(built)
    model = json.dumps(contract(repo, tmp_path / "s.yaml", *FIX)["model"])
    process = await asyncio.create_subprocess_exec(
        "node", str(script), str(repo.path), "Make add right.", str(VERIFY["run"]), model,
        env={**os.environ, "TEMPORAL_ADDRESS": address},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    assert "land" in out.decode()
    assert "success: verified and landed" in out.decode()
    assert repo.read("calc.py") == FIXED
