import os
import stat
from pathlib import Path

import pytest

from io_harness.activities.tools.errors import ToolError
from tests.unit.tools.conftest import Call
from tests.unit.tools.fidelity_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.tool}: {case.name}")
async def test_bytes_are_exactly_these(case: Case, root: Path, call: Call) -> None:
    file = root / "f"
    if case.before is not None:
        file.write_bytes(case.before)
        file.chmod(0o640)
    if isinstance(case.expected, bytes):
        await call(case.tool, **case.arguments)
        assert file.read_bytes() == case.expected
    else:
        with pytest.raises(ToolError) as refusal:
            await call(case.tool, **case.arguments)
        assert refusal.value.code == case.expected, refusal.value.message
        assert (file.read_bytes() if file.exists() else None) == case.before
    if case.before is not None:
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(root) == (["f"] if file.exists() else []), "a temporary file was left"


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40
    assert len({f"{case.tool}: {case.name}" for case in CASES}) == len(CASES)
