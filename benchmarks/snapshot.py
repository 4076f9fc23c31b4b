"""What a snapshot costs on a large tree, beside bare git processes in the same run.

    uv run python benchmarks/snapshot.py [--files 50000]

Prints the median and the quickest of several rounds. Absolute times depend on the machine; the column
`x git` says how many starts of a git that does nothing the step costs.

On 50,000 files nearly all of a snapshot is looking at every file, as `git status` does. The plan for
trees of that size: a tool that knows which paths it wrote stages only those (`git add -A -- PATH` was
5.5 times as fast as `git add -A` on this tree), and only commands look at everything.
"""

import argparse
import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.locks import file_lock
from io_harness.activities.prepare import make_copy
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy
from io_harness.workflows.contract import TaskContract

RUN = "benchmark"
PER_FOLDER = 100


def make_tree(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"d{number // PER_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number % PER_FOLDER}.py").write_text(
            f"# {number}\n" + "x = 1\n" * (number % 80)
        )
    subprocess.run(["git", "init", "-q", str(root)], check=True)


class Bench:
    def __init__(self, source: Path, data: Path) -> None:
        self.source = source
        self.settings = Settings(data_dir=data)
        self.store = SnapshotStore(data)
        self.contract = TaskContract.model_validate(
            {
                "goal": "measure",
                "workspace": {"kind": "directory", "path": str(source)},
                "verification": {"kind": "none"},
                "model": {"provider": "replay", "name": "none"},
            }
        )
        self.paths = CopyPaths.of(self.settings, RUN)
        self.at = ""
        self.round = 0

    async def bare(self) -> None:
        await self.store.git().run("version")

    async def status(self) -> None:
        """A user's own git, for comparison: it looks at every file too."""
        process = await asyncio.create_subprocess_exec(
            "git", "-C", str(self.paths.root), f"--git-dir={self.store.path}",
            f"--work-tree={self.paths.root}", "status", "--porcelain",
            env={"GIT_INDEX_FILE": str(self.paths.index), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        await process.wait()

    async def prepare(self) -> None:
        await self.store.ready()
        async with file_lock(self.paths.lock) as lock:
            self.at = await make_copy(self.store, self.paths, self.contract, lock)

    async def open(self) -> None:
        async with open_copy(self.store, self.settings, RUN, self.contract, self.at):
            pass

    async def unchanged(self) -> None:
        async with open_copy(self.store, self.settings, RUN, self.contract, self.at) as copy:
            await copy.snapshot("nothing")

    async def edited(self) -> None:
        async with open_copy(self.store, self.settings, RUN, self.contract, self.at) as copy:
            copy.begin_change()
            self.round += 1
            (copy.root / "d0" / "f0.py").write_text(f"round = {self.round}\n")
            self.at, _ = await copy.snapshot("edit")

    async def restored(self) -> None:
        async with open_copy(self.store, self.settings, RUN, self.contract, self.at) as copy:
            copy.begin_change()
            (copy.root / "d0" / "f0.py").write_text("half")
        await self.open()


async def timed(step: Callable[[], Awaitable[None]], rounds: int) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        await step()
        times.append((time.perf_counter() - start) * 1000)
    return times


async def main(files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        make_tree(source, files)
        bench = Bench(source, Path(folder) / "data")
        await bench.store.ready()
        steps: list[tuple[str, Callable[[], Awaitable[None]], int]] = [
            ("a git that does nothing", bench.bare, 20),
            ("import and copy", bench.prepare, 1),
            ("git status, as a user has it", bench.status, 10),
            ("open a clean copy", bench.open, 20),
            ("snapshot, nothing changed", bench.unchanged, 10),
            ("edit one file, snapshot", bench.edited, 10),
            ("crash, restore", bench.restored, 5),
        ]
        unit = 0.0
        print(f"{files} files{'':24}   median ms      min ms   x git")
        for name, step, rounds in steps:
            times = await timed(step, rounds)
            unit = unit or min(times)
            median = statistics.median(times)
            print(f"{name:32} {median:12.1f} {min(times):11.1f} {min(times) / unit:7.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    asyncio.run(main(parser.parse_args().files))
