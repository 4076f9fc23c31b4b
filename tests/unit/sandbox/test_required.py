"""What a contract requires of the sandbox, checked before anything is spent."""

from __future__ import annotations

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
