"""What a contestant is told, and what it reports."""

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence

from pydantic import BaseModel

COMMAND_SECONDS = 60


class Task(BaseModel):
    urls: list[str]
    """Base URL of the model, one per run; runs are concurrent."""
    workspace: str
    """Folder in which commands run."""
    scratch: str
    """Folder for whatever the contestant keeps."""
    goal: str = "Do what the script says."
    address: str = ""
    """host:port of the Temporal server, where one is used."""


class RunReport(BaseModel):
    outcome: str
    """`done`, or what ended the run before its script did."""
    executions: int = 0
    """One, and one for each continuation."""
    events: int = 0
    bytes: int = 0
    """Of the whole history, all executions together."""


class SdkMetrics(BaseModel):
    """What Temporal's SDK says of its worker."""

    activity_wait_ms: float
    """Mean time from an activity's scheduling to its start (`activity_schedule_to_start_latency`)."""
    workflow_task_wait_ms: float
    """The same of workflow tasks."""
    slots_used: int
    """Most activities at a time, as seen every two seconds; by default the SDK has 100 slots."""
    cache_misses: int
    """Workflow tasks for which a run had to be replayed (`sticky_cache_miss`)."""


class Report(BaseModel):
    runs: list[RunReport]
    peak_mib: float
    """Highest resident memory of the process."""
    cpu_seconds: float
    """Processor time of the process from the first run's start to the last one's end."""
    children_seconds: float
    """The same of the commands that it ran, and of all that they needed."""
    idle_mib: float = 0
    """Resident memory before the first run."""
    held_mib: float = 0
    """Resident memory while all runs waited, where they do."""
    approved_seconds: float = 0
    """From the first approval to the last end, where runs wait for one."""
    sdk: SdkMetrics | None = None
    """Of contestants on Temporal."""


class Meter:
    """Measures the contestant's own process from now on."""

    def __init__(self) -> None:
        self._idle_mib = resident_mib()
        self._begun = os.times()

    def report(self, runs: Sequence[RunReport]) -> Report:
        now, then = os.times(), self._begun
        return Report(
            runs=list(runs),
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            idle_mib=self._idle_mib,
            cpu_seconds=now.user + now.system - then.user - then.system,
            children_seconds=now.children_user
            + now.children_system
            - then.children_user
            - then.children_system,
        )


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def contestant(run: Callable[[Task], Coroutine[None, None, Report]]) -> None:
    """The main function of a contestant's module."""
    report = asyncio.run(run(Task.model_validate_json(sys.argv[1])))
    print(report.model_dump_json(), flush=True)


def in_shell(command: str, workspace: str) -> str:
    """What the peers' tool does: a bare subprocess."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=workspace,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
    return f"[exit {done.returncode}]\n{done.stdout}"
