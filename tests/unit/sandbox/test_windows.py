"""The Windows backend as far as it can be tested elsewhere: layouts and limits."""

from __future__ import annotations

import ctypes
import sys

import pytest

from io_harness.sandbox import Limits
from io_harness.sandbox.windows import kernel, structures
from io_harness.sandbox.windows.job_object import JobObject

pytestmark = pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="64-bit layouts")


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (structures.BasicLimits, 64),
        (structures.IoCounters, 48),
        (structures.ExtendedLimits, 144),
        (structures.Accounting, 48),
    ],
)
def test_sizes_are_those_of_the_64_bit_headers(
    structure: type[ctypes.Structure], size: int
) -> None:
    assert ctypes.sizeof(structure) == size


@pytest.mark.parametrize(
    ("field", "offset"),
    [
        ("PerJobUserTimeLimit", 8),
        ("LimitFlags", 16),
        ("MinimumWorkingSetSize", 24),
        ("ActiveProcessLimit", 40),
        ("Affinity", 48),
    ],
)
def test_offsets_of_the_basic_limits(field: str, offset: int) -> None:
    assert getattr(structures.BasicLimits, field).offset == offset


def test_limits_of_a_plan() -> None:
    made = structures.limits_of(Limits(cpu_seconds=7, memory_bytes=1 << 30, processes=9))
    assert made.JobMemoryLimit == 1 << 30
    assert made.BasicLimitInformation.ActiveProcessLimit == 9
    assert made.BasicLimitInformation.PerJobUserTimeLimit == 70_000_000
    assert made.BasicLimitInformation.LimitFlags == 0x2000 | 0x8 | 0x4 | 0x200 | 0x400


@pytest.mark.skipif(sys.platform == "win32", reason="there it works")
def test_elsewhere_it_says_so() -> None:
    assert JobObject().objection() == "it is Windows'"
    with pytest.raises(OSError, match="Windows"):
        kernel.create_job(structures.limits_of(Limits()))
