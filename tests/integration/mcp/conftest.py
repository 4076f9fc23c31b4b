from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from io_harness.activities.mcp.pool import Pool
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore

from .rig import Rig


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    root = tmp_path / "copy"
    root.mkdir()
    (root / "in-workspace.txt").write_text("from the workspace")
    data_dir = tmp_path / "data"
    await SnapshotStore(data_dir).ready()
    pool = Pool(
        Settings(data_dir=data_dir, credentials=frozenset({"MCP_TEST_TOKEN"})), RunNetwork()
    )
    yield Rig(root, data_dir, pool)
    await pool.aclose()
    assert pool.size == 0
