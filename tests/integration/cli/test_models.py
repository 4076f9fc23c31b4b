"""`io-harness models`, against a provider on loopback."""

import json
import os
import subprocess
import sys
from pathlib import Path

from .conftest import Done


def models(data: Path, *arguments: str, **environment: str) -> Done:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "io_harness", "models", *arguments],
        env={**kept, "IO_HARNESS_DATA": str(data), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_provider_without_its_key_is_told_and_not_asked(tmp_path: Path) -> None:
    done = models(tmp_path, "--provider", "anthropic", "--json")
    assert done.code == 6
    listing = json.loads(done.out)
    assert listing["state"] == "not configured"
    assert "ANTHROPIC_API_KEY" in listing["problem"]


def test_an_unknown_provider_is_a_usage_error_that_names_the_known(tmp_path: Path) -> None:
    done = models(tmp_path, "--provider", "antropic")
    assert done.code == 2
    assert "anthropic" in done.err
