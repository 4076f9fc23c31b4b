"""How long a person waits: for help, for a run's first model request, for the demo."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

from benchmarks.arena import environment, make_workspace
from benchmarks.model_server import ModelServer, Say
from benchmarks.report import Section, spread

Measure = Callable[[], Coroutine[None, None, float]]
_COMMAND = (sys.executable, "-m", "io_harness")
_FINISH = Say(tool="finish", arguments={"summary": "done"})


async def startup(rounds: int) -> Section:
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        async with ModelServer().running() as model:
            place = _Place(Path(name), model)
            measures: dict[str, Measure] = {
                "Python that does nothing": lambda: place.command(sys.executable, "-c", "pass"),
                "`io-harness --help`": lambda: place.command(*_COMMAND, "--help"),
                "import of the plugin": lambda: place.command(
                    sys.executable, "-c", "import io_harness.plugin"
                ),
                "`run` to its first model request, no server yet": place.first_request,
                "`demo`, to its end": lambda: place.command(*_COMMAND, "demo"),
            }
            for measure in measures.values():  # compiles, and probes the sandbox
                await measure()
            for _ in range(rounds):  # everybody in turn
                for label, measure in measures.items():
                    times.setdefault(label, []).append(1000 * await measure())
                    print(f"{label}: {times[label][-1]:.0f} ms", flush=True)
    bare = statistics.median(times["Python that does nothing"])
    return Section(
        name="startup",
        title=f"Start-up ({rounds} rounds)",
        columns=("what", "ms", "middle half", "x Python that does nothing"),
        rows=[
            (label, statistics.median(each), spread(each), statistics.median(each) / bare)
            for label, each in times.items()
        ],
        samples=times,
    )


class _Place:
    """Each command has a data directory of its own, so each starts its own server."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self._folder = folder
        self._model = model
        self._number = 0
        self._workspace = folder / "workspace"
        make_workspace(self._workspace)

    async def command(self, *words: str) -> float:
        """Seconds until the command has ended.

        Raises:
            RuntimeError: it failed.
        """
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self._environment()
        )
        _, stderr = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{words}: {stderr.decode(errors='replace')[-2000:]}")
        return time.perf_counter() - began

    async def first_request(self) -> float:
        name = f"start-{self._number}"
        url = self._model.open(name, lambda number: _FINISH)
        began = time.perf_counter()
        await self.command(
            *_COMMAND, "run", "--goal", "Do nothing.", "--workspace", str(self._workspace),
            "--model", "openai-compatible/scripted", "--policy", "unattended",
            "--set", f"model.base_url={url}",
        )  # fmt: skip
        return self._model.conversations.pop(name).arrivals[0] - began

    def _environment(self) -> dict[str, str]:
        self._number += 1
        data = self._folder / f"data-{self._number}"
        return environment(self._folder / "cache") | {"IO_HARNESS_DATA": str(data)}
