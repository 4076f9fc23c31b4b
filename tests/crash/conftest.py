"""Workers as processes of their own, to be killed with SIGKILL."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.forks import Command
from tests.integration.conftest import address, client, data_dir

__all__ = ["address", "client", "data_dir"]


@dataclass
class WorkerProcess:
    """`io-harness worker` on a queue of its own, as a user runs it."""

    address: str
    data_dir: Path
    task_queue: str
    process: Command | None = field(default=None)
    kills: int = 0

    def start(self) -> None:
        environment = {
            **os.environ,
            "TEMPORAL_ADDRESS": self.address,
            "IO_HARNESS_DATA": str(self.data_dir),
        }
        with open(os.devnull, "r+b", buffering=0) as nowhere:
            self.process = Command(
                "worker", "--task-queue", self.task_queue,
                cwd=Path.cwd(), environment=environment, streams=nowhere.fileno(),
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL, as the kernel does it when memory runs out: nothing of ours gets to run."""
        assert self.process is not None
        assert self.process.poll() is None, "the worker ended by itself"
        self.process.kill()
        self.process.wait()
        self.kills += 1

    async def again(self) -> None:
        self.kill()
        await asyncio.sleep(0.1)
        self.start()


@pytest.fixture
async def worker_process(
    address: str, data_dir: Path, request: pytest.FixtureRequest
) -> AsyncIterator[WorkerProcess]:
    worker = WorkerProcess(address, data_dir, f"crash-{request.node.name[:40]}")
    worker.start()
    yield worker
    if worker.process is not None and worker.process.poll() is None:
        worker.process.kill()
        worker.process.wait()
