"""The structures of Windows' job objects (winnt.h) and the limits of a plan in them.

Their layout doesn't depend on the system that this runs on, so it is tested everywhere.
"""

from __future__ import annotations

import ctypes

from ..plan import Limits

KILL_ON_JOB_CLOSE = 0x2000
LIMIT_ACTIVE_PROCESS = 0x8
LIMIT_JOB_TIME = 0x4
LIMIT_JOB_MEMORY = 0x200
DIE_ON_UNHANDLED_EXCEPTION = 0x400

BASIC_ACCOUNTING_INFORMATION = 1
BASIC_PROCESS_ID_LIST = 3
BASIC_UI_RESTRICTIONS = 4
EXTENDED_LIMIT_INFORMATION = 9

UI_RESTRICTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x40 | 0x80
"""Handles of others, reading and writing the clipboard, system parameters, display settings,
desktops, leaving Windows."""

_TICKS_PER_SECOND = 10_000_000


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class IoCounters(ctypes.Structure):
    """IO_COUNTERS."""

    _fields_ = tuple(
        (f"{kind}{what}Count", ctypes.c_uint64)
        for what in ("Operation", "Transfer")
        for kind in ("Read", "Write", "Other")
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", IoCounters),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = (
        ("TotalUserTime", ctypes.c_int64),
        ("TotalKernelTime", ctypes.c_int64),
        ("ThisPeriodTotalUserTime", ctypes.c_int64),
        ("ThisPeriodTotalKernelTime", ctypes.c_int64),
        ("TotalPageFaultCount", ctypes.c_uint32),
        ("TotalProcesses", ctypes.c_uint32),
        ("ActiveProcesses", ctypes.c_uint32),
        ("TotalTerminatedProcesses", ctypes.c_uint32),
    )

    @property
    def user_seconds(self) -> float:
        return int(self.TotalUserTime) / _TICKS_PER_SECOND


def limits_of(limits: Limits) -> ExtendedLimits:
    """A plan's limits as the job's. Windows counts user time only, and committed memory."""
    made = ExtendedLimits()
    basic = made.BasicLimitInformation
    basic.LimitFlags = (
        KILL_ON_JOB_CLOSE
        | LIMIT_ACTIVE_PROCESS
        | LIMIT_JOB_TIME
        | LIMIT_JOB_MEMORY
        | DIE_ON_UNHANDLED_EXCEPTION
    )
    basic.ActiveProcessLimit = limits.processes
    basic.PerJobUserTimeLimit = limits.cpu_seconds * _TICKS_PER_SECOND
    made.JobMemoryLimit = limits.memory_bytes
    return made
