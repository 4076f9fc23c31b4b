"""Background jobs of runs. They live in this worker, inside one run, and end with either."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from io_harness import sandbox
from io_harness.activities.network import CommandNetwork

from .errors import JobLost, TooManyJobs

MOST_JOBS = 8
"""Jobs of one run that run at the same time."""
_LOOK_SECONDS = 15.0
_POLL_SECONDS = 0.1

RunIsOver = Callable[[], Awaitable[bool]]


@dataclass
class Job:
    """One background command."""

    id: str
    run_key: str
    call: str
    """Id of the call that started it."""
    plan: sandbox.Plan
    network: CommandNetwork
    output: Path
    """Its raw output so far."""
    task: "asyncio.Task[sandbox.Completed]"
    begun: float = field(default_factory=time.monotonic)
    stopped: bool = False

    @property
    def running(self) -> bool:
        return not self.task.done()

    @property
    def size(self) -> int:
        return self.output.stat().st_size if self.output.exists() else 0

    def read(self, cursor: int, limit: int) -> bytes:
        if not self.output.exists():
            return b""
        with self.output.open("rb") as file:
            file.seek(cursor)
            return file.read(limit)

    async def wait(self, cursor: int, seconds: float) -> None:
        """Return when there is output beyond `cursor`, when the job has ended, or in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.size <= cursor:
                    ended, _ = await asyncio.wait({self.task}, timeout=_POLL_SECONDS)
                    if ended:
                        return

    async def stop(self) -> None:
        """End the whole tree of processes."""
        self.stopped = self.stopped or self.running
        self.task.cancel()
        await asyncio.wait({self.task})


class JobTable:
    """The jobs of one worker."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._worker = secrets.token_hex(3)
        self._started = 0
        self._jobs: dict[str, Job] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}

    async def start(
        self,
        run_key: str,
        call: str,
        plan: sandbox.Plan,
        network: CommandNetwork,
        is_over: RunIsOver,
    ) -> Job:
        """Start a job. A job that an earlier attempt of the same call started is stopped first.

        Args:
            call: id of the tool call.
            is_over: whether the run has ended, wherever that was; its jobs are then stopped.

        Raises:
            TooManyJobs: the run has `MOST_JOBS` running.
        """
        for earlier in self._of(run_key):
            if earlier.call == call:
                await earlier.stop()
        running = [job for job in self._of(run_key) if job.running]
        if len(running) >= MOST_JOBS:
            names = ", ".join(job.id for job in running)
            raise TooManyJobs(f"{len(running)} jobs run already ({names}); stop one first")
        self._started += 1
        name = f"job-{self._worker}-{self._started}"
        output = self._data_dir / "outputs" / run_key / name
        output.parent.mkdir(parents=True, exist_ok=True)
        task = asyncio.create_task(sandbox.run(plan, spill=output))
        job = self._jobs[name] = Job(name, run_key, call, plan, network, output, task)
        if run_key not in self._watches:
            self._watches[run_key] = asyncio.create_task(self._watch(run_key, is_over))
        return job

    def get(self, run_key: str, name: str) -> Job:
        """Raises:
        JobLost: no such job of the run on this worker.
        """
        job = self._jobs.get(name)
        if job is not None and job.run_key == run_key:
            return job
        if name.startswith(f"job-{self._worker}-"):
            raise JobLost(f"this run has no job {name!r}")
        raise JobLost(
            f"job {name!r} is lost: it belongs to another worker, which has ended or which this call "
            "didn't reach. What it wrote to the workspace since that worker's last call is lost too. "
            "Start it again if need be"
        )

    async def stop_run(self, run_key: str) -> None:
        """Stop the jobs of a run and forget them."""
        watch = self._watches.pop(run_key, None)
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()
        jobs = self._of(run_key)
        await asyncio.gather(*(job.stop() for job in jobs))
        for job in jobs:
            del self._jobs[job.id]

    async def aclose(self) -> None:
        """Stop all jobs; the worker ends."""
        for run_key in {job.run_key for job in self._jobs.values()}:
            await self.stop_run(run_key)

    def _of(self, run_key: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.run_key == run_key]

    async def _watch(self, run_key: str, is_over: RunIsOver) -> None:
        """A run can end on another worker, which then knows nothing of the jobs here."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(Exception):  # an unreachable server says nothing about the run
                if await is_over():
                    break
        await self.stop_run(run_key)
