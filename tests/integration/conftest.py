"""Fixtures on the real Temporal server: one server and one worker for the whole session."""

import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import GrpcCompression

from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.server import embedded_server
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.attributes import NAMES
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.scripted import Turn, write_script

Handle = WorkflowHandle[AgentRun, RunResult]


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with embedded_server(tmp_path_factory.mktemp("server"), NAMES) as held:
        yield held.server.address


@pytest.fixture(scope="session")
async def client(address: str, data_dir: Path) -> Client:
    return await Client.connect(
        address,
        plugins=[HarnessPlugin(Settings(data_dir=data_dir))],
        grpc_compression=GrpcCompression.NONE,
    )


@pytest.fixture(scope="session")
async def worker(client: Client) -> AsyncIterator[None]:
    async with harness_worker(client):
        yield


@dataclass(frozen=True)
class Repo:
    """A source directory under git with a bug, and a test that finds it."""

    path: Path

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def read(self, name: str) -> str:
        return (self.path / name).read_text()


FIXED = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return a - b\n"
TEST = """\
import unittest
from calc import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
VERIFY = {"kind": "command", "run": "python -m unittest -q test_calc"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    path = tmp_path / "source"
    path.mkdir()
    (path / "calc.py").write_text(BROKEN)
    (path / "test_calc.py").write_text(TEST)
    (path / ".gitignore").write_text("__pycache__/\n")
    repo = Repo(path)
    repo.git("init", "-q", "-b", "main")
    repo.git("config", "user.name", "t")
    repo.git("config", "user.email", "t@example.org")
    repo.git("add", ".")
    repo.git("commit", "-qm", "start")
    return repo


Start = Callable[..., Awaitable[Handle]]


@pytest.fixture
def start(client: Client, worker: None, repo: Repo, tmp_path: Path) -> Start:
    """Starts a run over `repo` with a scripted model; keywords override parts of the contract."""

    async def start(
        *turns: Turn,
        run_id: str = "",
        model_more: dict[str, object] | None = None,
        task_queue: str = TASK_QUEUE,
        start_signal: Decision | None = None,
        **contract: object,
    ) -> Handle:
        script = write_script(tmp_path / f"script-{uuid.uuid4().hex[:6]}.yaml", *turns)
        whole: dict[str, object] = {
            "goal": "Make add right.",
            "workspace": {"kind": "directory", "path": str(repo.path)},
            "verification": VERIFY,
            "policy": "unattended",
            "model": {
                "provider": "replay",
                "name": "script",
                "base_url": script,
                **(model_more or {}),
            },
            **contract,
        }
        return await client.start_workflow(
            AgentRun.run,
            TaskContract.model_validate(whole).model_dump(mode="json"),
            id=run_id or f"test-{uuid.uuid4().hex[:8]}",
            task_queue=task_queue,
            start_signal="decide" if start_signal else None,
            start_signal_args=[start_signal] if start_signal else [],
        )

    return start
