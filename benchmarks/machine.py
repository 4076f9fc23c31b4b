"""On what a benchmark ran: its numbers mean nothing without."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from io_harness.server import find_binary

_PACKAGES = (
    "io-harness", "temporalio", "pydantic", "pydantic-ai-slim", "openai-agents",
    "temporalio-openai-agents", "mini-swe-agent",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    at: str
    processor: str
    cores: int
    memory_gib: float
    system: str
    load: float
    """Processes that wanted a core in the minute before, on average."""
    versions: dict[str, str]
    """Of programs and packages; `not installed` where one is missing."""

    def lines(self) -> list[str]:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return [
            f"{self.at}: {self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB, "
            f"{self.system}; load before: {self.load:.1f}.",
            f"Versions: {versions}.",
        ]


def machine() -> Machine:
    temporal = find_binary()
    versions = {
        "Python": platform.python_version(),
        "Temporal server": _first_line(str(temporal), "--version") if temporal else "not installed",
        "git": _first_line("git", "--version"),
        "bubblewrap": _first_line("bwrap", "--version"),
    }
    return Machine(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30,
        system=f"{platform.system()} {platform.release()}",
        load=os.getloadavg()[0],
        versions=versions | {name: _installed(name) for name in _PACKAGES},
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _first_line(program: str, option: str) -> str:
    if shutil.which(program) is None:
        return "not installed"
    done = subprocess.run([program, option], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].partition(" ")[2].removeprefix("version ")
