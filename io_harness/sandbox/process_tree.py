"""Processes by way of Linux' /proc: which belong together, what they use, how to end them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def available() -> bool:
    """Whether this host shows its processes in /proc."""
    return (PROC / "self" / "stat").exists()


def children(pid: int) -> list[int]:
    """Direct children of all threads of a process; empty when it is gone."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # It ended while we looked.
    return found


def tree(root: int) -> list[int]:
    """The process and all its descendants that are still linked to it."""
    found = [root]
    for pid in found:
        found += children(pid)
    return found


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def message_queue_limit(pid: int) -> int | None:
    """Hard RLIMIT_MSGQUEUE of a process; None when it is gone, or not ours to see."""
    try:
        with open(f"/proc/{pid}/limits") as file:
            for line in file:
                if line.startswith("Max msgqueue size"):
                    hard = line.split()[4]
                    return int(hard) if hard.isdigit() else None
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return None


def is_zombie(pid: int) -> bool:
    """Whether a process has ended (is a zombie, or gone)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return True


@dataclass(frozen=True, slots=True)
class Usage:
    """What a set of processes uses now."""

    cpu_seconds: float
    """Their own, and that of children they waited for."""
    rss_bytes: int
    """Resident sets added up; shared pages count once per process."""
    count: int


def usage(pids: Iterable[int]) -> Usage:
    ticks = pages = count = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        count += 1
        ticks += sum(map(int, fields[11:15]))
        pages += int(fields[21])
    return Usage(ticks / _TICKS, pages * _PAGE, count)


def proportional_bytes(pids: Iterable[int]) -> int:
    """Summed PSS, and swap: each shared page divided among those that share it."""
    return sum(_rollup(pid, "Pss:", "SwapPss:") for pid in pids)


def memory_bytes(pids: Sequence[int]) -> int:
    """`proportional_bytes`, and what of the processes' memory files is mapped by none of them."""
    mapped = sum(_rollup(pid, "Pss_Shmem:") for pid in pids)
    return proportional_bytes(pids) + max(0, memory_file_bytes(pids) - mapped)


def memory_file_bytes(pids: Iterable[int]) -> int:
    """Allocated bytes of the open files that memfd_create(2) made, each once."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                if os.readlink(path).startswith("/memfd:"):
                    file = os.stat(path)
                    found[file.st_dev, file.st_ino] = file.st_blocks * 512
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # It ended or closed it while we looked, or is not ours to see.
    return sum(found.values())


def _rollup(pid: int, *fields: str) -> int:
    """The sum of these fields of /proc/PID/smaps_rollup in bytes; the resident set where that is
    not ours to see."""
    total = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith(fields):
                    total += int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except PermissionError:
        return usage([pid]).rss_bytes
    return total


def kill_all(pids: Iterable[int]) -> None:
    """SIGKILL to each process that is still there."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
