"""Shells given code, and wrappers given another command: what is inside."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .opaque import is_stream
from .steering import steers
from .words import Arg
from .wrappers import wrapped, wraps_after_options

_SHELL_FLAGS = re.compile(r"[-+][aefhmnpuvxBCEHPTl]+\Z|--(?:login|noprofile|norc|posix)\Z")


@dataclass(frozen=True)
class ShellCall:
    own: list[Arg]
    """Its words without the code."""
    code: str | None
    """Text that the shell runs."""
    opaque: bool


def read_shell(args: list[Arg]) -> ShellCall:
    """Take apart a call of a shell; `args[0]` is the program."""
    opaque = False
    at = 1
    while at < len(args) and args[at].known and re.match(r"[-+]\w|--\w", args[at].text):
        text = args[at].text
        if re.fullmatch(r"-[a-zA-Z]*c", text):
            rest = [arg for arg in args[at + 1 :] if not re.match(r"-\w", arg.text)]
            known = bool(rest) and rest[0].known
            code = rest[0].text if known else None
            opaque = opaque or not known or "k" in text or _may_differ(args[0], rest[0].text)
            return ShellCall(args[: at + 1], code, opaque)
        if text in ("--version", "--help"):
            return ShellCall(args, None, opaque)
        if text in ("-o", "+o", "-O", "+O"):
            at += 1
        else:
            opaque = opaque or not _SHELL_FLAGS.match(text)
        at += 1
    # Without a file it runs its standard input.
    named = at < len(args) and args[at].known and not is_stream(args[at].text)
    return ShellCall(args, None, opaque or not named)


def only_bash_reads(code: str) -> bool:
    """Whether a plain shell may take the code for something else than bash does. dash knows no `[[`,
    no `((...))` and no escapes in `$'...'`."""
    return bool(re.search(r"\$'|\[\[\s|(?<!\$)\(\(", code))


def _may_differ(program: Arg, code: str) -> bool:
    name = posixpath.basename(program.text)
    if name in ("bash", "rbash"):
        return False
    return name not in ("sh", "dash", "ash", "posh") or only_bash_reads(code)


@dataclass(frozen=True)
class WrappedCall:
    inner: list[Arg]
    """The command that is run; empty if none is given."""
    opaque: bool
    moves: bool = False
    """It may run in another folder."""
    stays: bool = False
    """It is run by the same shell."""
    code: str | None = None
    """Text of a command line instead (`env -S`)."""


def read_wrapper(name: str, args: list[Arg]) -> WrappedCall | None:
    """Take apart a call of a program that runs another; None for any other program."""
    found = wrapped([name, *(arg.text for arg in args[1:3])], args)
    if found is None:
        return WrappedCall([], opaque=True) if wraps_after_options(name, args[1:]) else None
    spec, named = found
    at = spec.options.operands(args, named)
    if at is None:
        code = _split_string(args) if name == "env" else None
        return WrappedCall([], opaque=code is None, code=code)
    own = args[named:at]
    opaque = False
    while spec.assignments and at < len(args) and re.match(r"\w+=", args[at].text):
        opaque = opaque or steers(*args[at].text.split("=", 1))
        at += 1
    inner = args[min(at + spec.before, len(args)) :]
    if inner and name == "xargs":
        inner = [*_replaced(own, inner), Arg("", known=False)]
    if inner and name == "uv" and inner[0].text.endswith(".py"):
        inner = [Arg("python"), *inner]
    if name in ("sudo", "doas") and any(re.match(r"-\w*[si]", arg.text) for arg in own):
        opaque = True
    return WrappedCall(
        inner,
        opaque,
        moves=any(arg.text.startswith(("-C", "-D", "--chdir", "--directory")) for arg in own),
        stays=name in ("command", "builtin", "time"),
    )


def _replaced(own: Sequence[Arg], inner: Sequence[Arg]) -> list[Arg]:
    """xargs: words that hold the replacement string, `{}` or the one of `-I`, become input."""
    marks = {"{}"}
    for before, after in pairwise([*own, Arg("")]):
        if found := re.match(r"-\w*[Ii](.*)|--replace=(.*)", before.text):
            marks.add(found[1] or found[2] or after.text)
    marks.discard("")
    return [Arg(a.text, known=False) if any(m in a.text for m in marks) else a for a in inner]


def _split_string(args: Sequence[Arg]) -> str | None:
    """The command line that `env -S` makes of its words, if that is plain."""
    for index, arg in enumerate(args[1:], start=1):
        found = re.match(r"-[iv0]*S(.*)|--split-string(?:=(.*))?", arg.text, re.DOTALL)
        if found is None:
            continue
        rest = [found[1] or found[2] or "", *(a.text for a in args[index + 1 :])]
        plain = all(a.known for a in args) and not re.search(r"[\\$#]", "".join(rest))
        return "env " + " ".join(rest) if plain else None
    return None
