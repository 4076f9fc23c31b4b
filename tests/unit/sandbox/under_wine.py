"""What `test_wine.py` runs in a CPython for Windows under Wine: `under_wine.py PACKAGES`, where
PACKAGES is a folder with the pure Python packages that the sandbox needs. Prints one JSON object."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
    sys.path.append(sys.argv[1])

from io_harness import sandbox  # noqa: E402
from io_harness.sandbox import Limits, Plan  # noqa: E402
from io_harness.sandbox.isolation import Isolation  # noqa: E402
from io_harness.sandbox.supervisor import supervise  # noqa: E402
from io_harness.sandbox.windows.job_object import JobObject  # noqa: E402

LEAVE = (
    "import subprocess, sys, time; "
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); print('left')"
)


async def run(directory: Path, script: str, **limits: float) -> dict[str, object]:
    backend = JobObject()
    plan = Plan(
        argv=(sys.executable, "-c", script),
        cwd=directory,
        workspace=directory,
        env={**sandbox.base_env(), "GIVEN": "yes"},
        limits=Limits(**({"wall_seconds": 60} | limits)),  # type: ignore[arg-type]
    )
    done = await supervise(plan, backend, Isolation(backend.name, dict(backend.best)), None, None)
    return {
        "cause": done.cause,
        "code": done.exit_code,
        "output": done.stdout.text(),
        "seconds": done.seconds,
    }


async def main() -> None:
    os.environ["NOT_GIVEN"] = "secret"
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        found = {
            "exit": await run(directory, "import sys; print('out'); sys.exit(3)"),
            "wall": await run(directory, "import time; time.sleep(300)", wall_seconds=2),
            "left": await run(directory, LEAVE),
            "env": await run(
                directory, "import os; print('GIVEN' in os.environ, 'NOT_GIVEN' in os.environ)"
            ),
        }
    sys.stdout.write(json.dumps(found))


asyncio.run(main())
