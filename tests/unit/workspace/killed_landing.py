"""A landing in a process that is killed after a number of effects on the source."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from io_harness.activities.landing import land
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.payloads import LandInput


async def attempt(
    contract: TaskContract, given: LandInput, settings: Settings, effects: int
) -> int:
    """Land in a process of its own, killed right before the effect after `effects` of them. Its exit
    code."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        contract.model_dump_json(),
        given.model_dump_json(),
        str(settings.data_dir),
        str(effects),
    )
    return await process.wait()


def main(contract: str, given: str, data_dir: str, effects: str) -> None:
    task, left = TaskContract.model_validate_json(contract), int(effects)
    source = os.fsencode(task.model_dump()["workspace"]["path"])

    def counted(effect: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            nonlocal left
            target = os.fsencode(args[-1])
            if target.startswith(source) and b".tmp" not in target:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
            return effect(*args, **options)

        return run

    os.replace, os.unlink = counted(os.replace), counted(os.unlink)
    settings = Settings(data_dir=Path(data_dir))
    store = SnapshotStore(settings.data_dir)
    asyncio.run(land(task, LandInput.model_validate_json(given), settings, store))


if __name__ == "__main__":
    main(*sys.argv[1:])
