"""Which files programs write that are named among their operands, and what find runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .words import Arg

_ALL = frozenset({"tee", "touch", "truncate", "rm", "rmdir", "mkdir", "unlink", "shred", "mv"})
_LAST = frozenset({"cp", "install", "ln"})


def written(name: str, args: Sequence[Arg]) -> list[str]:
    """Paths that the program writes, as far as they are known; `args` without the program."""
    if name == "dd":
        return [arg.text[3:] for arg in args if arg.known and arg.text.startswith("of=")]
    operands = [arg for arg in args if not arg.text.startswith("-")]
    if name == "sort":
        return _sorted_into(args)
    if name in _LAST:
        into = (re.match(r"(?:-t|--target-directory=)(.+)", arg.text) for arg in args)
        named = [found[1] for found in into if found]
        return named or [arg.text for arg in operands[-1:] if arg.known]
    if name in ("sed", "gsed") and any(re.match(r"-\w*i|--in", arg.text) for arg in args):
        operands = operands[1:]
    elif name not in _ALL:
        return []
    return [arg.text for arg in operands if arg.known]


def _sorted_into(args: Sequence[Arg]) -> list[str]:
    into: list[str] = []
    for arg, following in pairwise([*args, Arg("")]):
        if found := re.match(r"-[a-zA-Z]*o(.*)|--o[a-z]*(?:=(.*))?\Z", arg.text, re.DOTALL):
            into.append(found[1] or found[2] or following.text)
    return [path for path in into if path]


@dataclass
class FindCall:
    """What a call of find or fd does besides finding."""

    commands: list[list[Arg]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    moves: bool = False
    """Runs its commands in the folders that it finds."""
    opaque: bool = False


def read_find(name: str, args: Sequence[Arg]) -> FindCall | None:
    """Take apart the arguments of find or fd; None for another program."""
    if name in ("find", "gfind"):
        return _find(args)
    if name in ("fd", "fdfind"):
        return _fd(args)
    return None


def _find(args: Sequence[Arg]) -> FindCall:
    call = FindCall()
    at = 0
    while at < len(args):
        text = args[at].text
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at + 1
            while end < len(args) and args[end].text not in (";", "+"):
                end += 1
            call.commands.append([_found(arg) for arg in args[at + 1 : end]])
            call.moves = call.moves or text.endswith("dir")
            at = end
        elif text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
            call.writes += [arg.text for arg in args[at + 1 : at + 2]]
        elif not args[at].known and not args[at].glob:
            # A first operand is a folder; a later one may become -exec.
            call.opaque = call.opaque or at > 0
        at += 1
    return call


def _fd(args: Sequence[Arg]) -> FindCall:
    call = FindCall()
    for at, arg in enumerate(args):
        if arg.text in ("-x", "-X", "--exec", "--exec-batch"):
            call.commands.append([*args[at + 1 :], Arg("{}", known=False)])
            break
        if re.match(r"-\w*[xX]|--exec", arg.text) or (not arg.known and not arg.glob):
            call.opaque = True
    return call


def _found(arg: Arg) -> Arg:
    return Arg(arg.text, known=False) if "{}" in arg.text else arg
