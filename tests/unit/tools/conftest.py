from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.gate import Gate
from io_harness.activities.network import RunNetwork
from io_harness.activities.outputs import RunOutputs
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.beneath import Beneath
from io_harness.activities.tools.context import ToolContext
from io_harness.activities.tools.history import History
from io_harness.activities.tools.jobs import JobTable
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Observation, ToolCall
from io_harness.workflows.policy import Policy

Call = Callable[..., Coroutine[None, None, Observation]]


_numbers = count()


async def never() -> bool:
    return False


def make_contract(**more: object) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "test",
            "workspace": {"kind": "directory", "path": "/nowhere"},
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "r", "base_url": "r.json"},
            "policy": "unattended",
            **more,
        }
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "copy"
    path.mkdir()
    return path


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def make_context(
    root: Path,
    data_dir: Path,
    tool: str,
    arguments: dict[str, JsonValue],
    policy: Policy | None = None,
    jobs: JobTable | None = None,
    **contract: object,
) -> ToolContext:
    return ToolContext(
        run_key="run-1",
        root=root,
        files=Beneath(root),
        gate=Gate(policy or Policy(preset="unattended")),
        outputs=RunOutputs(data_dir, "run-1"),
        contract=make_contract(**contract),
        blobs=SnapshotStore(data_dir),
        history=History(SnapshotStore(data_dir), "0" * 40),
        network=RunNetwork(),
        jobs=jobs or JobTable(data_dir),
        run_is_over=never,
        call=ToolCall(id=f"call-{next(_numbers)}", name=tool, arguments=arguments),
        begin_change=lambda: None,
    )


@pytest.fixture
async def jobs(data_dir: Path) -> AsyncIterator[JobTable]:
    table = JobTable(data_dir)
    yield table
    await table.aclose()


@pytest.fixture
def call(root: Path, data_dir: Path, jobs: JobTable) -> Call:
    """Calls a tool by name as the activity does, with the real gate of the preset `unattended`."""
    registry = ToolRegistry()

    async def run(
        tool: str, /, policy: Policy | None = None, **arguments: JsonValue
    ) -> Observation:
        context = make_context(root, data_dir, tool, arguments, policy, jobs)
        return await registry.get(tool).call(arguments, context)

    return run
