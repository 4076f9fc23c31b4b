"""Help is instant: it imports nothing heavy."""

import subprocess
import sys

import pytest

from io_harness.cli import group

HEAVY = ("temporalio", "pydantic", "rich", "yaml", "httpx")


@pytest.mark.parametrize("arguments", [[], *([name] for name in group.commands)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = f"""
import sys
sys.argv = ["io-harness", *{arguments!r}, "--help"]
from io_harness.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: io-harness" in done.stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from io_harness.cli import main; main()", "nonsense"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "nonsense" in done.stderr
