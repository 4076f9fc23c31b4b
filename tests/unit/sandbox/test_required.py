"""What a contract requires of the sandbox, checked before anything is spent."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from temporalio.exceptions import ApplicationError

from io_harness import sandbox
from io_harness.activities.prepare import strong_enough
from io_harness.workflows.contract import TaskContract

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sandbox.objection("linux-bubblewrap") is not None,
    reason="needs a backend that enforces the default",
)


def contract(**spec: object) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "Anything.",
            "workspace": {"kind": "directory", "path": "/nowhere"},
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "recording", "base_url": "/nowhere"},
            "sandbox": spec,
        }
    )


async def test_the_default_is_met_here() -> None:
    asked = contract()
    assert set(asked.sandbox.require) == sandbox.DEFAULT_REQUIRE
    assert (await strong_enough(asked)).backend == "linux-bubblewrap"


async def test_what_nobody_enforces_refuses_the_run_and_is_named() -> None:
    with pytest.raises(ApplicationError, match="does not enforce memory") as caught:
        await strong_enough(contract(require=["fs_write", "memory"]))
    assert (caught.value.type, caught.value.non_retryable) == ("SandboxTooWeak", True)


async def test_less_can_be_accepted() -> None:
    assert (await strong_enough(contract(require=[]))).backend == "linux-bubblewrap"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare(1)")
def test_root_of_a_namespace_without_other_users_is_told_what_to_do() -> None:
    """It can't become the user that commands run as, and the system call's own error names nothing."""
    script = "from io_harness import sandbox; print(sandbox.objection('linux-bubblewrap'))"
    words = ["unshare", "--user", "--map-root-user", sys.executable, "-c", script]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "none such (/proc/self/uid_map)" in said
    assert "run as an ordinary user" in said
