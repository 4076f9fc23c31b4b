"""A command line as the policy sees it: the acts of which it is made."""

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence

from io_harness.workflows.rules import Act

from .calls import only_bash_reads, read_shell, read_wrapper
from .danger import danger_of
from .files import read_find, written
from .git import read_git
from .opaque import SHELLS, base_name, is_opaque, is_stream
from .places import Places
from .script import After, Assignment, Folders, both, read_script
from .steering import holds_code, holds_subscript_code, sets_steering, steers
from .values import Values
from .words import Arg, canonical, literals

Target = tuple[Act, str]

_MAX_DEPTH = 8
_DEVICES = re.compile(r"/dev/(?:null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd/\d+)\Z")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/([^/]+)\Z")


def targets_of(
    command: str | Sequence[str],
    *,
    root: str,
    home: str,
    folder: str = "",
    private: Sequence[str] = ("/tmp", "/dev/shm"),
    bash: bool = True,
    resolve: Callable[[str], str] = posixpath.normpath,
) -> tuple[Target, ...]:
    """The acts that a command line (string) or argument vector (sequence) is made of.

    Each simple command is one `exec` target. A word that can't be known before it runs stands in it
    as `<dynamic>`. A command of which it isn't known what it runs gives a second target that begins
    with `<dynamic>`, one that destroys a second that begins with `<discard>` or `<destroy>`. A
    redirection is a `write` or `read`, `/dev/tcp/HOST/PORT` a `net`.

    Args:
        root: absolute path of the workspace, as commands see it.
        home: absolute path of the home folder, as commands see it.
        folder: where the command starts, relative to the workspace.
        private: folders that the sandbox keeps to the command; writing there is no act.
        bash: whether it is bash that runs a string, and not a plain shell.
        resolve: absolute path to the absolute path without symbolic links.
    """
    places = Places(root.rstrip("/"), home.rstrip("/") or "/", tuple(private), resolve)
    analysis = _Analysis(places)
    start: Folders = frozenset({posixpath.normpath(posixpath.join(root, folder))})
    understood = bash or not (isinstance(command, str) and only_bash_reads(command))
    try:
        if isinstance(command, str):
            read_script(command, analysis, start)
        else:
            analysis.command([], literals(tuple(command)), start)
    except RecursionError:
        # Scripts in scripts, each deeply nested: what was found so far stands, the rest isn't known.
        understood = False
    if not (understood and analysis.values.understood):
        analysis.opaque(command if isinstance(command, str) else shlex.join(command))
    return tuple(dict.fromkeys(analysis.found))


class _Analysis:
    """Collects the acts; what `read_script` tells about."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.home = places.home
        self.values = Values()
        self.found: list[Target] = []
        self._depth = 0

    def opaque(self, what: str) -> None:
        self._dynamic([Arg(what)])

    def redirect(self, operator: str, target: Arg, folders: Folders) -> None:
        duplicates = operator in (">&", "<&", ">&-", "<&-")
        if duplicates and re.fullmatch(r"\d*-?", target.text):
            return
        reads = operator in ("<", "<&")
        if not target.known:
            if not reads:
                self._dynamic([Arg(operator), target])
        elif socket := _SOCKET.match(target.text):
            self.found.append(("net", f"{socket[1]}:{socket[2]}"))
        else:
            self._path("read" if reads else "write", target.text, folders)

    def command(self, assignments: list[Assignment], args: list[Arg], folders: Folders) -> After:
        for assignment in assignments:
            if steers(assignment.name, assignment.value.text) or holds_code(assignment.value):
                self._dynamic([Arg(f"{assignment.name}={assignment.value.text}"), *args])
        if any(holds_subscript_code(arg) for arg in args):
            self._dynamic(args)
        return self._simple(args, folders)

    # --- one simple command -----------------------------------------------------------------------

    def _simple(self, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        if not args:
            return stay
        if self._depth >= _MAX_DEPTH or not args[0].known:
            self._exec([Arg("", known=False), *args[1:]])
            return stay
        self._depth += 1
        try:
            return self._known(_program(args[0].text), args, folders)
        finally:
            self._depth -= 1

    def _known(self, name: str, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        builtin = _BUILTINS.get(name) if args[0].text == name else None
        if builtin is not None:
            return builtin(self, args, folders)
        if name in SHELLS:
            return self._shell(args, folders)
        if name == "git":
            self._git(args, folders)
            return stay
        wrapper = read_wrapper(name, args)
        if wrapper is not None:
            self._exec_from(args, folders)
            if wrapper.opaque:
                self._dynamic(args)
            where = None if wrapper.moves else folders
            if wrapper.code is not None:
                self._script(wrapper.code, where)
            after = self._simple(wrapper.inner, where)
            return after if wrapper.stays else stay
        if name.startswith(("ld-linux", "ld-musl", "ld.so")):
            self._dynamic(args)
            self._simple(args[1:], folders)
            return stay
        self._program(name, args, folders)
        return stay

    def _program(self, name: str, args: list[Arg], folders: Folders) -> None:
        self._exec_from(args, folders)
        if args[0].text == name:
            self.values.command(name, args[1:])
        if is_opaque(base_name(name), args[1:]) or sets_steering(name, args[1:]):
            self._dynamic(args)
        find = read_find(name, args[1:])
        if find is not None:
            if find.opaque:
                self._dynamic(args)
            for inner in find.commands:
                self._simple(inner, None if find.moves else folders)
        self._danger(name, args, folders)
        for path in (*written(name, args[1:]), *(find.writes if find else ())):
            self._path("write", path, folders)

    def _danger(self, name: str, args: list[Arg], folders: Folders) -> None:
        where: Sequence[str | None] = [None] if folders is None else sorted(folders)
        plain = [Arg(base_name(name)), *args[1:]]
        marks = {danger_of(plain, at, self.places.root, self.home) for at in where} - {None}
        for mark in sorted(mark for mark in marks if mark is not None):
            self.found.append(("exec", f"{mark} {canonical(args)}"))

    def _shell(self, args: list[Arg], folders: Folders) -> After:
        call = read_shell(args)
        self._exec_from(call.own, folders)
        if call.opaque:
            self._dynamic(args)
        if call.code is not None:
            self._script(call.code, folders)
        return After(folders, folders)

    def _script(self, code: str, folders: Folders) -> After:
        """Code inside a command: the same again, to a depth."""
        if self._depth >= _MAX_DEPTH:
            self._dynamic([Arg(code)])
            return After(None, None)
        return read_script(code, self, folders)

    def _git(self, args: list[Arg], folders: Folders) -> None:
        call = read_git(args)
        self._exec_from(call.words, folders)
        opaque = call.opaque
        if call.folder is not None and call.folder.known:
            folders = self.places.joined(call.folder.text, folders)
            opaque |= folders is None or not all(self.places.inside(f) for f in folders)
        if opaque:
            self._dynamic(args)
        self._danger("git", call.words, folders)

    # --- builtins ---------------------------------------------------------------------------------

    def _cd(self, args: list[Arg], folders: Folders) -> After:
        self._exec(args)
        operands = [a for a in args[1:] if not re.fullmatch(r"-[LPe@]+|--", a.text)]
        if not operands:
            there: Folders = frozenset({self.home})
        elif not operands[0].known or operands[0].text == "-":
            there = None
        else:
            there = self.places.joined(operands[0].text, folders)
        return After(there, both(folders, there))

    def _moved(self, args: list[Arg], folders: Folders) -> After:
        """pushd, popd."""
        self._exec(args)
        return After(None, None)

    def _eval(self, args: list[Arg], folders: Folders) -> After:
        if not all(arg.known for arg in args):
            self._dynamic(args)
            return After(None, None)
        return self._script(" ".join(arg.text for arg in args[1:]), folders)

    def _trap(self, args: list[Arg], folders: Folders) -> After:
        self._exec(args[:1])
        shows = len(args) > 1 and args[1].text in ("-l", "-p")
        for code in [] if shows else [arg for arg in args[1:] if arg.text != "--"][:1]:
            if code.known:
                self._script(code.text, None)
            else:
                self._dynamic(args)
        return After(folders, folders)

    def _source(self, args: list[Arg], folders: Folders) -> After:
        self._exec(args)
        if len(args) < 2 or not args[1].known or is_stream(args[1].text):
            self._dynamic(args)
        return After(None, None)

    def _rebinds(self, args: list[Arg], folders: Folders) -> After:
        """alias, enable, hash, bind, complete: what a name means later."""
        self._exec(args)
        only_shows = len(args) == 1 or (len(args) == 2 and args[1].text in ("-r", "-p", "-l"))
        if not only_shows:
            self._dynamic(args)
        return After(folders, folders)

    def _mapfile(self, args: list[Arg], folders: Folders) -> After:
        self._exec(args)
        self.values.command(args[0].text, args[1:])
        if any(re.match(r"-\w*C", arg.text) or not arg.known for arg in args[1:]):
            self._dynamic(args)
        return After(folders, folders)

    # --- what is found ----------------------------------------------------------------------------

    def _exec(self, args: list[Arg]) -> None:
        self.found.append(("exec", canonical(args)))

    def _dynamic(self, args: Sequence[Arg]) -> None:
        self.found.append(("exec", f"<dynamic> {canonical(list(args))}"))

    def _exec_from(self, args: list[Arg], folders: Folders) -> None:
        """A command whose program may be named by a path: from each folder that it may run in."""
        program = args[0].text
        paths = self.places.joined(program, folders) if "/" in program else frozenset[str]()
        if paths is None:
            self._dynamic(args)
            return
        for path in sorted(paths):
            placed = self.places.placed(path)
            self._exec([Arg(placed if placed.startswith("/") else f"./{placed}"), *args[1:]])
        if not paths:
            self._exec(args)

    def _path(self, act: Act, text: str, folders: Folders) -> None:
        if _DEVICES.match(text):
            return
        paths = self.places.joined(text, folders)
        if paths is None:
            self._dynamic([Arg(">" if act == "write" else "<"), Arg(text)])
            return
        for path in sorted(self.places.resolve(path) for path in paths):
            if not self.places.is_private(path):
                self.found.append((act, self.places.placed(path)))


_BUILTINS: dict[str, Callable[[_Analysis, list[Arg], Folders], After]] = {
    "cd": _Analysis._cd,
    "chdir": _Analysis._cd,
    "pushd": _Analysis._moved,
    "popd": _Analysis._moved,
    "eval": _Analysis._eval,
    "trap": _Analysis._trap,
    "source": _Analysis._source,
    ".": _Analysis._source,
    "alias": _Analysis._rebinds,
    "enable": _Analysis._rebinds,
    "hash": _Analysis._rebinds,
    "bind": _Analysis._rebinds,
    "complete": _Analysis._rebinds,
    "mapfile": _Analysis._mapfile,
    "readarray": _Analysis._mapfile,
}


def _program(text: str) -> str:
    name = posixpath.basename(text.replace("\\", "/")).casefold()
    return name.removesuffix(".exe")
