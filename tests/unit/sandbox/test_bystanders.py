"""What a probe lets its attack look for does not outlive a worker that is killed meanwhile."""

import subprocess
import sys
import time

import pytest

from tests.processes import lives

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PROBING = """
import asyncio
from io_harness.sandbox.probe import _bystanders

async def main():
    async with _bystanders() as (_, mark, _):
        print(mark, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_bystander_ends_with_the_worker() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROBING], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        mark = worker.stdout.readline().strip()
        assert lives(mark)
        worker.kill()
        worker.wait()
        for _ in range(200):
            if not lives(mark):
                break
            time.sleep(0.05)
        assert not lives(mark)
