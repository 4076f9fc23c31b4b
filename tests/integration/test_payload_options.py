"""A run whose payloads are compressed, and one whose large payloads are stored outside of history."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    DataConverter,
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from io_harness.activities.settings import Settings
from io_harness.codec import ZstdCodec
from io_harness.plugin import HarnessPlugin, harness_worker
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.scripted import call, turn, write_script

from .conftest import FIXED, VERIFY, Repo


class Files(StorageDriver):
    """Payloads as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name(self) -> str:
        return "files"

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        claims = []
        for payload in payloads:
            key = uuid.uuid4().hex
            (self.folder / key).write_bytes(payload.SerializeToString())
            claims.append(StorageDriverClaim({"key": key}))
        return claims

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        stored = ((self.folder / claim.claim_data["key"]).read_bytes() for claim in claims)
        return [Payload.FromString(data) for data in stored]


async def run(client: Client, repo: Repo, tmp_path: Path, queue: str = "") -> bytes:
    """A run that must succeed, named like its queue; its history as it is on the wire."""
    (repo.path / "big.txt").write_text("the same words again and again\n" * 300)
    script = write_script(
        tmp_path / "script.yaml",
        turn(call("read_file", path="big.txt")),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
        turn(call("finish", summary="done")),
    )
    contract = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(repo.path)},
        "verification": VERIFY,
        "policy": "unattended",
        "model": {"provider": "replay", "name": "script", "base_url": script},
    }
    queue = queue or f"payloads-{uuid.uuid4().hex[:6]}"
    async with harness_worker(client, task_queue=queue):
        handle = await client.start_workflow(
            "AgentRun", TaskContract.model_validate(contract), id=queue, task_queue=queue,
            result_type=RunResult,
        )  # fmt: skip
        result = await handle.result()
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert repo.read("calc.py") == FIXED
    events = [event.SerializeToString() async for event in handle.fetch_history_events()]
    return b"".join(events)


@pytest.mark.timeout(180)
async def test_a_run_under_the_codec(address: str, repo: Repo, tmp_path: Path) -> None:
    plugin = HarnessPlugin(Settings(data_dir=tmp_path / "data"), codec=ZstdCodec())
    history = await run(await Client.connect(address, plugins=[plugin]), repo, tmp_path)
    assert b"binary/zstd" in history
    assert b"the same words again and again" not in history


@pytest.mark.timeout(180)
async def test_a_run_with_external_storage(address: str, repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "stored").mkdir()
    storage = ExternalStorage([Files(tmp_path / "stored")], payload_size_threshold=2_000)
    client = await Client.connect(
        address,
        data_converter=DataConverter(external_storage=storage),
        plugins=[HarnessPlugin(Settings(data_dir=tmp_path / "data"))],
    )
    history = await run(client, repo, tmp_path)
    assert b"the same words again and again" not in history
    assert list((tmp_path / "stored").iterdir())


async def test_a_codec_of_the_client_stays(address: str, tmp_path: Path) -> None:
    theirs = ZstdCodec(level=19)
    plugin = HarnessPlugin(Settings(data_dir=tmp_path), codec=ZstdCodec())
    converter = DataConverter(payload_codec=theirs)
    client = await Client.connect(address, data_converter=converter, plugins=[plugin])
    assert client.data_converter.payload_codec is theirs
