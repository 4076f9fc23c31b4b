"""Tables of outcomes, made once for all test processes: each takes many seconds."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .namespaces import in_new

ROOT = Path(__file__).parents[3]
SECONDS = 400

Table = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Outcomes by case, as a module of this folder prints them in a network namespace of its own."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def made(module: str) -> dict[str, Any]:
        with (folder / f"{module}.jsonl").open("a+") as kept:
            fcntl.flock(kept, fcntl.LOCK_EX)
            kept.seek(0)
            lines = kept.readlines() or told_by(module)
            kept.seek(0)
            kept.truncate()
            kept.writelines(lines)
        return {row["name"]: row for row in map(json.loads, lines)}

    return made


def told_by(module: str) -> list[str]:
    done = subprocess.run(
        in_new(sys.executable, "-m", f"{__package__}.{module}"),
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines(keepends=True)
