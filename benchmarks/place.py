"""A server, and workers as processes of their own."""

import asyncio
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import GrpcCompression

from io_harness.server import embedded_server
from io_harness.workflows.attributes import NAMES

_START_SECONDS = 180


@dataclass(frozen=True)
class Worker:
    """`io-harness worker`, as a user runs it."""

    process: "subprocess.Popen[bytes]"
    log: Path

    async def ready(self) -> None:
        """Wait until it takes tasks."""
        async with asyncio.timeout(_START_SECONDS):
            while "working on the task queue" not in self.log.read_text():  # noqa: ASYNC110 - only its log tells
                await asyncio.sleep(0.05)

    def peak_mib(self) -> float:
        """Most memory that the process itself had so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (each for each in status.splitlines() if each.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Place:
    client: Client
    address: str
    folder: Path

    def worker(self, task_queue: str) -> "Worker":
        log = self.folder / f"{uuid.uuid4().hex}.log"
        with log.open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "io_harness", "worker", "--task-queue", task_queue],
                env={
                    **os.environ,
                    "TEMPORAL_ADDRESS": self.address,
                    "IO_HARNESS_DATA": str(self.folder / "data"),
                },
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
        return Worker(process, log)


@asynccontextmanager
async def embedded_place() -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        async with embedded_server(folder / "server", NAMES) as held:
            client = await Client.connect(
                held.server.address,
                data_converter=pydantic_data_converter,
                grpc_compression=GrpcCompression.NONE,
            )
            yield Place(client, held.server.address, folder)
