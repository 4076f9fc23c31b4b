"""Temporary directories and who still holds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness.sandbox.leased import leased_directory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows can't lock a directory")

LEASE = """
import sys
from io_harness.sandbox.leased import leased_directory
with leased_directory("test") as made:
    print(made, flush=True)
    sys.stdin.read()
"""


def lease(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", LEASE],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_removed_on_leaving() -> None:
    with leased_directory("test") as made:
        (made / "file").touch()
    assert not made.exists()


def test_the_next_process_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    killed, left = lease(tmp_path)
    with killed:
        killed.kill()
    living, held = lease(tmp_path)
    with living:
        assert list(tmp_path.iterdir()) == [held]
        another, also_held = lease(tmp_path)
        with another:
            assert set(tmp_path.iterdir()) == {held, also_held}
            another.communicate()
        living.communicate()
    assert left != held
    assert list(tmp_path.iterdir()) == []
