"""The seccomp filter: allow, except what an ordinary program has no use for.

A classic BPF program over `struct seccomp_data` (linux/seccomp.h), assembled here for x86_64 and
aarch64. See seccomp(2) for why the architecture is checked before anything else.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .syscalls import CONDITIONAL, REFUSED

Architecture = Literal["x86_64", "aarch64"]

_AUDIT_ARCH: dict[Architecture, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_LD_ABS, _JEQ, _JGT, _JGE, _JSET, _RET = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_OFFSET_NR, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
REFUSE = ERRNO | errno.EPERM
ABSENT = ERRNO | errno.ENOSYS
NO_FAMILY = ERRNO | errno.EAFNOSUPPORT
NO_PROTOCOL = ERRNO | 93
"""EPROTONOSUPPORT, which some programs take as a hint to use another (Go: TCP for MPTCP)."""
NO_MEMORY = ERRNO | errno.ENOMEM
PRETEND = ERRNO
"""The call returns 0 and does nothing."""

_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_CLONE_NEWTIME = 0x80
"""Only for unshare and clone3; in clone's flags the bit belongs to the exit signal."""
_SETID_BITS = 0o6000
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_PERSONALITY_QUERY = 0xFFFFFFFF
_PR_SET_PDEATHSIG = 1
_PROTOCOLS = (0, 1, 6, 17, 58)
"""The family's own choice, ICMP, TCP, UDP, ICMPv6. Others load modules that few have looked at."""
_SEGMENT_BYTES = 64 * 1024
"""Of one System V segment, of which a namespace has 4096 at most. What nobody has attached is in no
process' memory, so nothing else would bound it; databases keep a few bytes there."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Argument `index` has one of these bits."""

    index: int
    bits: int


@dataclass(frozen=True, slots=True)
class Equals:
    """Argument `index` is this value."""

    index: int
    value: int


@dataclass(frozen=True, slots=True)
class Unless:
    """Argument `index` is none of these values."""

    index: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """Argument `index` is greater than this value."""

    index: int
    value: int


@dataclass(frozen=True, slots=True)
class Huge:
    """Argument `index` is 2**32 or more."""

    index: int


Condition = AnyOf | Equals | Unless | Above | Huge


@dataclass(frozen=True, slots=True)
class Rule:
    """All conditions hold: the action. Conditions but `Huge` look at the low 32 bits, as the kernel
    does for every other argument named here."""

    syscall: str
    action: int
    conditions: tuple[Condition, ...] = ()


def rules(*, unix_sockets: bool, network: bool = True) -> tuple[Rule, ...]:
    """The policy, in the order in which it is checked. Without `network` no Internet socket can be
    made: for backends that have no network namespace."""
    families = (*((_AF_INET, _AF_INET6) if network else ()), *((_AF_UNIX,) if unix_sockets else ()))
    creating = _O_CREAT | _O_TMPFILE
    return (
        Rule("clone3", ABSENT),
        Rule("openat2", ABSENT),
        Rule("clone", REFUSE, (AnyOf(0, _NAMESPACES),)),
        Rule("unshare", REFUSE, (AnyOf(0, _NAMESPACES | _CLONE_NEWTIME),)),
        Rule("ioctl", REFUSE, (Equals(1, _TIOCSTI),)),
        Rule("ioctl", REFUSE, (Equals(1, _TIOCLINUX),)),
        Rule("ioctl", REFUSE, (Equals(1, _TIOCSETD),)),
        Rule("socket", NO_FAMILY, (Unless(0, families),) if families else ()),
        Rule("socket", NO_PROTOCOL, (Unless(2, _PROTOCOLS),)),
        Rule("socketpair", NO_FAMILY, (Unless(0, (_AF_UNIX,)),)),
        Rule("shmget", NO_MEMORY, (Huge(1),)),
        Rule("shmget", NO_MEMORY, (Above(1, _SEGMENT_BYTES),)),
        # The first process could be made to take back that it dies with the worker.
        Rule("prctl", PRETEND, (Equals(0, _PR_SET_PDEATHSIG),)),
        Rule("personality", REFUSE, (Unless(0, (_PERSONALITY_QUERY,)),)),
        Rule("open", REFUSE, (AnyOf(1, creating), AnyOf(2, _SETID_BITS))),
        Rule("openat", REFUSE, (AnyOf(2, creating), AnyOf(3, _SETID_BITS))),
        Rule("creat", REFUSE, (AnyOf(1, _SETID_BITS),)),
        Rule("mknod", REFUSE, (AnyOf(1, _SETID_BITS),)),
        Rule("mknodat", REFUSE, (AnyOf(2, _SETID_BITS),)),
        Rule("chmod", REFUSE, (AnyOf(1, _SETID_BITS),)),
        Rule("fchmod", REFUSE, (AnyOf(1, _SETID_BITS),)),
        Rule("fchmodat", REFUSE, (AnyOf(2, _SETID_BITS),)),
        Rule("fchmodat2", REFUSE, (AnyOf(2, _SETID_BITS),)),
        *(Rule(name, REFUSE) for name in REFUSED),
    )


def architecture() -> Architecture | None:
    """This host's, if the filter is written for it."""
    return next((arch for arch in _AUDIT_ARCH if arch == platform.machine()), None)


def number(syscall: str, arch: Architecture) -> int | None:
    numbers = REFUSED.get(syscall) or CONDITIONAL[syscall]
    return numbers[0 if arch == "x86_64" else 1]


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    k: int
    jt: int = 0
    jf: int = 0

    def packed(self) -> bytes:
        return struct.pack("<HBBI", self.code, self.jt, self.jf, self.k)


@functools.cache
def program(arch: Architecture, *, unix_sockets: bool = False, network: bool = True) -> bytes:
    """The filter as an array of `struct sock_filter`."""
    instructions = [
        _Instruction(_LD_ABS, _OFFSET_ARCH),
        _Instruction(_JEQ, _AUDIT_ARCH[arch], jt=1),
        _Instruction(_RET, KILL_PROCESS),
        _Instruction(_LD_ABS, _OFFSET_NR),
    ]
    if arch == "x86_64":
        instructions += [_Instruction(_JGE, _X32_BIT, jf=1), _Instruction(_RET, ABSENT)]
    for rule in rules(unix_sockets=unix_sockets, network=network):
        nr = number(rule.syscall, arch)
        if nr is not None:
            instructions += _assemble(rule, nr)
    instructions.append(_Instruction(_RET, ALLOW))
    return b"".join(instruction.packed() for instruction in instructions)


def _assemble(rule: Rule, nr: int) -> Iterator[_Instruction]:
    """The rule's block: falls through with the accumulator holding the call number again."""
    body: list[_Instruction] = []
    checks = [_check(condition) for condition in rule.conditions]
    rest = sum(len(check) + 1 for check in checks)
    for check in checks:
        # Each check ends where the action (or the next check) begins, or jumps to the reload.
        rest -= len(check) + 1
        body.append(_Instruction(_LD_ABS, check[0].offset))
        for place, test in enumerate(check):
            to_end_of_check = len(check) - 1 - place
            to_reload = to_end_of_check + rest + 1
            holds = to_end_of_check if test.holds else to_reload
            fails = 0 if place < len(check) - 1 else (to_reload if test.holds else 0)
            body.append(_Instruction(test.code, test.k, jt=holds, jf=fails))
    body.append(_Instruction(_RET, rule.action))
    reload = [_Instruction(_LD_ABS, _OFFSET_NR)] if rule.conditions else []
    yield _Instruction(_JEQ, nr, jf=len(body) + len(reload))
    yield from body
    yield from reload


@dataclass(frozen=True, slots=True)
class _Test:
    offset: int
    code: int
    k: int
    holds: bool
    """Whether the condition holds (or fails) when the jump is taken."""


def _check(condition: Condition) -> list[_Test]:
    low = _OFFSET_ARGS + 8 * condition.index
    match condition:
        case AnyOf(_, bits):
            return [_Test(low, _JSET, bits, True)]
        case Equals(_, value):
            return [_Test(low, _JEQ, value, True)]
        case Above(_, value):
            return [_Test(low, _JGT, value, True)]
        case Huge():
            return [_Test(low + 4, _JSET, 0xFFFFFFFF, True)]
        case Unless(_, values):
            return [_Test(low, _JEQ, value, False) for value in values]
