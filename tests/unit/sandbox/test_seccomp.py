"""The assembled filter, run by a small interpreter of classic BPF against the policy's meaning."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.sandbox.linux import seccomp
from io_harness.sandbox.linux.seccomp import (
    ABSENT,
    ALLOW,
    KILL_PROCESS,
    NO_FAMILY,
    NO_MEMORY,
    NO_PROTOCOL,
    PRETEND,
    REFUSE,
)
from io_harness.sandbox.linux.syscalls import CONDITIONAL, REFUSED

ARCHITECTURES: tuple[seccomp.Architecture, ...] = ("x86_64", "aarch64")
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PROGRAMS = {
    (arch, unix): seccomp.program(arch, unix_sockets=unix)
    for arch in ARCHITECTURES
    for unix in (False, True)
}


def evaluate(program: bytes, nr: int, arch: int, args: tuple[int, ...]) -> int:
    data = struct.pack("<IIQ6Q", nr, arch, 0, *args, *([0] * (6 - len(args))))
    at = accumulator = 0
    while True:
        code, jt, jf, k = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, k)
            case 0x15:
                at += jt if accumulator == k else jf
            case 0x25:
                at += jt if accumulator > k else jf
            case 0x35:
                at += jt if accumulator >= k else jf
            case 0x45:
                at += jt if accumulator & k else jf
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(f"unexpected instruction {code:#x}")


def meaning(syscall: str, args: tuple[int, ...], unix_sockets: bool) -> int:
    """The policy read directly, without BPF."""
    low = [arg & 0xFFFFFFFF for arg in args]
    for rule in seccomp.rules(unix_sockets=unix_sockets):
        if rule.syscall != syscall:
            continue
        holds = []
        for condition in rule.conditions:
            match condition:
                case seccomp.AnyOf(index, bits):
                    holds.append(bool(low[index] & bits))
                case seccomp.Equals(index, value):
                    holds.append(low[index] == value)
                case seccomp.Above(index, value):
                    holds.append(low[index] > value)
                case seccomp.Huge(index):
                    holds.append(args[index] >= 2**32)
                case seccomp.Unless(index, values):
                    holds.append(low[index] not in values)
        if all(holds):
            return rule.action
    return ALLOW


INTERESTING = st.one_of(
    st.sampled_from([0, 1, 2, 10, 16, 17, 0o100, 0o4755, 0o2000, 0x5412, 0x541C, 0x10000000]),
    st.sampled_from([0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x80, 0x20000, 0o20000000, 1 << 32]),
    st.integers(0, 2**64 - 1),
)


@given(
    arch=st.sampled_from(ARCHITECTURES),
    unix=st.booleans(),
    syscall=st.sampled_from([*REFUSED, *CONDITIONAL]),
    args=st.tuples(*[INTERESTING] * 6),
)
def test_program_does_what_the_policy_says(
    arch: seccomp.Architecture, unix: bool, syscall: str, args: tuple[int, ...]
) -> None:
    nr = seccomp.number(syscall, arch)
    if nr is not None:
        found = evaluate(PROGRAMS[arch, unix], nr, AUDIT[arch], args)
        assert found == meaning(syscall, args, unix)


@given(arch=st.sampled_from(ARCHITECTURES), nr=st.integers(0, 0x3FFFFFFF))
def test_other_calls_are_allowed(arch: seccomp.Architecture, nr: int) -> None:
    named = {seccomp.number(name, arch) for name in (*REFUSED, *CONDITIONAL)}
    if nr not in named:
        assert evaluate(PROGRAMS[arch, False], nr, AUDIT[arch], ()) == ALLOW


@pytest.mark.parametrize(
    ("syscall", "args", "expected"),
    [
        ("clone", (0x01200011,), ALLOW),
        ("clone", (0x10000011,), REFUSE),
        ("clone3", (), ABSENT),
        ("openat2", (), ABSENT),
        ("unshare", (0x400,), ALLOW),
        ("unshare", (0x80,), REFUSE),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), REFUSE),
        ("ioctl", (0, 0xFFFFFFFF00005412), REFUSE),
        ("socket", (2,), ALLOW),
        ("socket", (10,), ALLOW),
        ("socket", (1,), NO_FAMILY),
        ("socket", (16,), NO_FAMILY),
        ("socket", (40,), NO_FAMILY),
        ("socket", (2, 1, 6), ALLOW),
        ("socket", (2, 1, 132), NO_PROTOCOL),
        ("socketpair", (1,), ALLOW),
        ("socketpair", (30,), NO_FAMILY),
        ("ioctl", (0, 0x5423), REFUSE),
        ("shmget", (0, 65536), ALLOW),
        ("shmget", (0, 65537), NO_MEMORY),
        ("shmget", (0, 1 << 32), NO_MEMORY),
        ("prctl", (38, 1), ALLOW),
        ("prctl", (1, 0), PRETEND),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x0040000,), REFUSE),
        ("openat", (0, 0, 0, 0o4755), ALLOW),
        ("openat", (0, 0, 0o101, 0o644), ALLOW),
        ("openat", (0, 0, 0o101, 0o4755), REFUSE),
        ("fchmodat", (0, 0, 0o755), ALLOW),
        ("fchmodat", (0, 0, 0o2755), REFUSE),
        ("ptrace", (), REFUSE),
        ("mount", (), REFUSE),
    ],
)
def test_cases(syscall: str, args: tuple[int, ...], expected: int) -> None:
    for arch in ARCHITECTURES:
        nr = seccomp.number(syscall, arch)
        assert nr is not None
        assert evaluate(PROGRAMS[arch, False], nr, AUDIT[arch], args) == expected


def test_unix_sockets_by_opt_in() -> None:
    for arch in ARCHITECTURES:
        nr = seccomp.number("socket", arch)
        assert nr is not None
        assert evaluate(PROGRAMS[arch, True], nr, AUDIT[arch], (1,)) == ALLOW
        assert evaluate(PROGRAMS[arch, True], nr, AUDIT[arch], (16,)) == NO_FAMILY


def test_foreign_architecture_is_killed_and_x32_refused() -> None:
    i386, x32 = 0x40000003, 0x40000000
    assert evaluate(PROGRAMS["x86_64", False], 4, i386, ()) == KILL_PROCESS
    assert evaluate(PROGRAMS["aarch64", False], 4, AUDIT["x86_64"], ()) == KILL_PROCESS
    assert evaluate(PROGRAMS["x86_64", False], x32 | 1, AUDIT["x86_64"], ()) == ABSENT


GOLDEN = (
    {"x86_64": 239, "aarch64": 209},
    {"x86_64": "4f0c1643a5233598", "aarch64": "bffcab5dfdbfedb8"},
)


def test_golden() -> None:
    """A change of the policy changes these on purpose."""
    sizes = {arch: len(PROGRAMS[arch, False]) // 8 for arch in ARCHITECTURES}
    digests = {arch: hashlib.sha256(PROGRAMS[arch, False]).hexdigest()[:16] for arch in sizes}
    assert (sizes, digests) == GOLDEN
