"""A Temporal server of a test's own, its database on disk, so that it can be killed and come back."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from temporalio.client import Client
from temporalio.service import GrpcCompression

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin
from io_harness.workflows.attributes import NAMES

SUGGEST_AT_EVENTS = 30


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class ServerProcess:
    """A server that suggests continue-as-new after a few events."""

    def __init__(
        self,
        folder: Path,
        suggest_at: int = SUGGEST_AT_EVENTS,
        attributes: Mapping[str, str] = NAMES,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._database = folder / "temporal.db"
        self._suggest_at = suggest_at
        self._attributes = attributes
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        attributes = (
            f"--search-attribute={name}={kind}" for name, kind in self._attributes.items()
        )
        self._process = subprocess.Popen(
            [
                str(Path(sys.executable).parent / "temporal"), "server", "start-dev", "--headless",
                "--port", str(self.port), "--log-level", "error",
                "--db-filename", str(self._database),
                "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal",
                "--dynamic-config-value",
                f"limit.historyCount.suggestContinueAsNew={self._suggest_at}",
                "--dynamic-config-value", 'history.workflowIdReuseMinimalInterval="0s"',
                "--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
                *attributes,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL: nothing is written any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def again(self) -> None:
        self.kill()
        await asyncio.sleep(0.1)
        self.start()


async def connected(address: str, data_dir: Path) -> Client:
    """A client with the plugin, as soon as the server answers."""
    for _ in range(600):
        try:
            return await Client.connect(
                address,
                plugins=[HarnessPlugin(Settings(data_dir=data_dir))],
                grpc_compression=GrpcCompression.NONE,
            )
        except RuntimeError:
            await asyncio.sleep(0.1)
    raise RuntimeError("the server does not answer")
