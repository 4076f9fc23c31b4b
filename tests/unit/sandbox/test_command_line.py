"""`io-harness sandbox`, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness import sandbox

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sandbox.objection("linux-bubblewrap") is not None,
    reason="needs bubblewrap",
)


def io_harness(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from io_harness.cli import main; main()", "sandbox", *words],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_commands_output_and_code_are_its_own(tmp_path: Path) -> None:
    done = io_harness(tmp_path, "--", "sh", "-c", "echo here > file; cat file; exit 5")
    assert (done.returncode, done.stdout) == (5, "here\n")
    assert (tmp_path / "file").read_text() == "here\n"


def test_read_only_writes_nothing(tmp_path: Path) -> None:
    assert io_harness(tmp_path, "--mode", "read_only", "--", "touch", "file").returncode == 1
    assert not (tmp_path / "file").exists()


def test_a_weak_backend_is_refused_unless_asked_for(tmp_path: Path) -> None:
    refused = io_harness(tmp_path, "--backend", "portable-floor", "--", "touch", "file")
    assert refused.returncode == 7
    assert "does not enforce fs_write, net_deny" in refused.stderr
    assert not (tmp_path / "file").exists()
    taken = io_harness(tmp_path, "--weak", "--backend", "portable-floor", "--", "touch", "file")
    assert taken.returncode == 0


def test_doctor_as_json(tmp_path: Path) -> None:
    found = json.loads(io_harness(tmp_path, "doctor", "--json").stdout)
    best = found["backends"][0]
    assert best["backend"] == "linux-bubblewrap"
    assert set(best["levels"]) == set(sandbox.PROPERTIES)
    assert best["levels"]["fs_write"] == "enforced"
