"""A command line as the policy sees it: the acts of which it is made."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from io_harness.workflows.rules import Act

from .danger import danger_of
from .git import read_git
from .opaque import SHELLS, base_name, is_opaque
from .script import After, Assignment, Folders, both, read_script
from .words import Arg, canonical, literals
from .wrappers import Wrapper, wrapped

Target = tuple[Act, str]

_MAX_DEPTH = 8
_DEVICES = re.compile(r"/dev/(?:null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd/\d+)\Z")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/([^/]+)\Z")
_STEERING = re.compile(
    r"(?:PATH|IFS|ENV|BASH_ENV|BASH_FUNC.*|SHELL|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|HOME|CDPATH"
    r"|XDG_CONFIG_HOME|LD_.*|DYLD_.*|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT\Z|PAGER\Z).*|SSH_ASKPASS"
    r"|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|MANPAGER|MANOPT|PYTHONSTARTUP|PYTHONHOME|PYTHONBREAKPOINT"
    r"|PYTHONINSPECT|PYTHONUSERBASE|PERL5OPT|PERL5LIB|PERL5DB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS"
    r"|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|RUSTC|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER|CARGO_BUILD_RUSTC.*"
    r"|CARGO_TARGET_.*_(?:RUNNER|LINKER)|MAKEFLAGS|MAKEFILES|GOFLAGS|GOTOOLDIR|npm_config_script_shell"
    r"|NPM_CONFIG_SCRIPT_SHELL|TAR_OPTIONS|RSYNC_RSH|CVS_RSH|SVN_SSH|LUA_INIT.*|AWKPATH|GCC_EXEC_PREFIX"
    r"|COMPILER_PATH|GAWK_.*|POSIXLY_CORRECT|TMOUT|FCEDIT|GLOBIGNORE|EXECIGNORE|histchars)\Z"
)
"""Variables that decide which program runs, or with what code."""
_DECLARES = frozenset({"export", "declare", "typeset", "local", "readonly"})
_EVALUATES = frozenset(
    {"printf", "test", "[", "[[", "read", "unset", "let", "mapfile", "readarray", *_DECLARES}
)
"""Builtins that evaluate subscripts, and with them substitutions, in their arguments."""
_WRITERS = {
    "tee": "all", "touch": "all", "truncate": "all", "rm": "all", "rmdir": "all", "mkdir": "all",
    "unlink": "all", "shred": "all", "mv": "all", "cp": "last", "install": "last", "ln": "last",
}  # fmt: skip
"""Which operands of these programs are written."""


def targets_of(
    command: str | Sequence[str],
    *,
    root: str,
    home: str,
    folder: str = "",
    private: Sequence[str] = ("/tmp", "/dev/shm"),
    resolve: Callable[[str], str] = posixpath.normpath,
) -> tuple[Target, ...]:
    """The acts that a command line (string) or argument vector (sequence) is made of.

    Each simple command is one `exec` target; what can't be known before it runs stands as `<dynamic>`.
    A redirection is a `write` or `read`, `/dev/tcp/HOST/PORT` a `net`.

    Args:
        root: absolute path of the workspace, as commands see it.
        home: absolute path of the home folder, as commands see it.
        folder: where the command starts, relative to the workspace.
        private: folders that the sandbox keeps to the command; writing there is no act.
        resolve: absolute path to the absolute path without symlinks.
    """
    analysis = _Analysis(root.rstrip("/"), home.rstrip("/"), tuple(private), resolve)
    start: Folders = frozenset({posixpath.normpath(posixpath.join(root, folder))})
    if isinstance(command, str):
        read_script(command, analysis, start)
    else:
        analysis.command([], literals(tuple(command)), start)
    return tuple(dict.fromkeys(analysis.found))


@dataclass
class _Analysis:
    root: str
    home: str
    private: tuple[str, ...]
    resolve: Callable[[str], str]

    def __post_init__(self) -> None:
        self.found: list[Target] = []
        self.depth = 0

    # --- what a script tells --------------------------------------------------------------------

    def opaque(self, what: str) -> None:
        self.dynamic([Arg(what)])

    def redirect(self, operator: str, target: Arg, folders: Folders) -> None:
        text = target.text
        if operator in (">&", "<&", ">&-", "<&-") and re.fullmatch(r"\d*-?", text):
            return
        act: Act = "read" if operator in ("<", "<&") else "write"
        if not target.known:
            if act == "write":
                self.dynamic([Arg(operator), Arg(text)])
            return
        if socket := _SOCKET.match(text):
            self.found.append(("net", f"{socket[1]}:{socket[2]}"))
        else:
            self.path(act, text, folders)

    def command(self, assignments: list[Assignment], args: list[Arg], folders: Folders) -> After:
        for assignment in assignments:
            source = f"{assignment.name}={assignment.value.text}"
            if _STEERING.match(assignment.name) or _is_code(assignment.value):
                self.dynamic([Arg(source), *args])
        if not args:
            return After(folders, folders)
        if any(_is_subscript_code(arg) for arg in args):
            self.dynamic(args)
        return self.simple(args, folders)

    # --- one simple command ---------------------------------------------------------------------

    def simple(self, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        if not args:
            return stay
        self.depth += 1
        try:
            if self.depth > _MAX_DEPTH or not args[0].known:
                self.found.append(("exec", canonical([Arg("", known=False), *args[1:]])))
                return stay
            return self._known(args, folders)
        finally:
            self.depth -= 1

    def _known(self, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        name = _program(args[0].text)
        bare = args[0].text == name
        if bare and name in ("cd", "chdir"):
            return self._cd(args, folders)
        if bare and name in ("pushd", "popd"):
            self.exec(args)
            return After(None, None)
        if bare and name in (
            "eval",
            "trap",
            "source",
            ".",
            "alias",
            "enable",
            "hash",
            "bind",
            "complete",
        ):
            return self._builtin(name, args, folders)
        if name in SHELLS:
            return self._shell(args, folders)
        if name == "git":
            self._git(args, folders)
            return stay
        if name.startswith(("ld-linux", "ld-musl", "ld.so")) and len(args) > 1:
            self.dynamic(args)
            return After(folders, self.simple(args[1:], folders).any)
        wrapper = wrapped([_program(args[0].text), *(a.text for a in args[1:3])], args)
        if wrapper is not None:
            return self._wrapper(args, *wrapper, folders)
        self._program_call(name, args, folders)
        return stay

    def _program_call(self, name: str, args: list[Arg], folders: Folders) -> None:
        self._exec_from(args, folders)
        base = base_name(name)
        if name in ("find", "gfind", "fd", "fdfind"):
            self._find(args, folders)
        if is_opaque(base, args[1:]):
            self.dynamic(args)
        if name in _EVALUATES and any(_is_code(arg) for arg in args[1:]):
            self.dynamic(args)
        if name in _DECLARES or name in ("read", "unset", "printf"):
            named = [a for a in args[1:] if _STEERING.match(a.text.split("=")[0])]
            if named and name != "printf":
                self.dynamic(args)
            if name == "printf" and len(args) > 2 and args[1].text == "-v" and named:
                self.dynamic(args)
        self._danger(name, args, folders)
        self._operands(name, args, folders)

    def _danger(self, name: str, args: list[Arg], folders: Folders) -> None:
        where: Sequence[str | None] = [None] if folders is None else sorted(folders)
        plain = [Arg(base_name(name)), *args[1:]]
        marks = {danger_of(plain, folder, self.root, self.home) for folder in where}
        for mark in sorted(mark for mark in marks if mark is not None):
            self.found.append(("exec", f"{mark} {canonical(args)}"))

    def _wrapper(self, args: list[Arg], spec: Wrapper, named: int, folders: Folders) -> After:
        at = spec.options.operands(args, named)
        name = _program(args[0].text)
        if at is None:
            if name == "env" and (split := _split_string(args)) is not None:
                self.exec(args[:1])
                self.dynamic(args) if split == "" else None
                read_script(split, self, folders)
                return After(folders, folders)
            self.exec(args)
            self.dynamic(args)
            return After(folders, folders)
        for arg in args[named:at]:
            if name == "env" and arg.text.startswith(("-C", "--chdir")):
                folders = None
        if spec.assignments:
            while at < len(args) and re.match(r"\w+=", args[at].text):
                if _STEERING.match(args[at].text.partition("=")[0]):
                    self.dynamic(args)
                at += 1
        at = min(at + spec.before, len(args))
        self.exec(args[:at])
        inner = args[at:]
        if not inner:
            if name in ("sudo", "doas", "chroot", "xargs") or spec.before:
                return After(folders, folders)
            return After(folders, folders)
        if name == "xargs":
            inner = [*inner, Arg("<more>", known=False)]
        if name == "uv" and inner[0].text.endswith(".py"):
            inner = [Arg("python"), *inner]
        after = self.simple(inner, folders)
        keeps = name in ("command", "builtin", "time")
        return after if keeps else After(folders, folders)

    def _shell(self, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        at = 1
        while at < len(args) and args[at].known and re.match(r"[-+]\w|--\w", args[at].text):
            text = args[at].text
            if re.fullmatch(r"-[a-zA-Z]*c", text):
                self._exec_from(args[: at + 1], folders)
                code = args[at + 1] if at + 1 < len(args) else None
                while code is not None and code.text.startswith("-"):
                    at += 1
                    code = args[at + 1] if at + 1 < len(args) else None
                if code is None or not code.known or self.depth >= _MAX_DEPTH:
                    self.dynamic(args)
                else:
                    read_script(code.text, self, folders)
                return stay
            if text in ("-o", "+o", "-O", "+O"):
                at += 1
            elif text in ("--version", "--help"):
                self._exec_from(args, folders)
                return stay
            elif not re.fullmatch(
                r"[-+][aefhkmnpuvxBCEHPTl]+|--(?:login|noprofile|norc|posix)", text
            ):
                self.dynamic(args)
            at += 1
        self._exec_from(args, folders)
        if at >= len(args) or args[at].text in ("-", "--") or not args[at].known:
            self.dynamic(args)  # commands from standard input, or from a file not known
        return stay

    def _builtin(self, name: str, args: list[Arg], folders: Folders) -> After:
        stay = After(folders, folders)
        if name == "eval":
            if not all(arg.known for arg in args):
                self.dynamic(args)
                return After(None, None)
            return read_script(" ".join(arg.text for arg in args[1:]), self, folders)
        if name == "trap":
            code = next((a for a in args[1:] if not a.text.startswith("-")), None)
            self.exec(args[:1])
            if code is not None and code.known:
                read_script(code.text, self, None)
            elif code is not None:
                self.dynamic(args)
            return stay
        self.exec(args)
        if name in ("source", "."):
            if len(args) < 2 or not args[1].known or _DEVICES.match(args[1].text):
                self.dynamic(args)
            return After(None, None)
        if len(args) > 1 and not (name == "hash" and args[1].text == "-r"):
            self.dynamic(args)
        return stay

    def _git(self, args: list[Arg], folders: Folders) -> None:
        call = read_git(args)
        self._exec_from(call.words, folders)
        if call.opaque:
            self.dynamic(call.words)
        if call.folder is not None and call.folder.known:
            folders = self._joined(call.folder.text, folders)
            inside = folders is not None and all(self._inside(f) for f in folders)
            if not inside:
                self.dynamic(args)
        self._danger("git", call.words, folders)

    def _find(self, args: list[Arg], folders: Folders) -> None:
        at = 1
        markers = (
            ("-exec", "-execdir", "-ok", "-okdir")
            if "find" in _program(args[0].text)[-4:] and not args[0].text.startswith("fd")
            else ("-x", "-X", "--exec", "--exec-batch")
        )
        while at < len(args):
            text = args[at].text
            if text in markers or not args[at].known:
                end = at + 1
                while end < len(args) and args[end].text not in (";", "+"):
                    end += 1
                inner = [
                    Arg(a.text, known=False) if "{}" in a.text else a for a in args[at + 1 : end]
                ]
                if not args[at].known and not args[at].glob and at > 1:
                    self.dynamic(args)
                elif text in markers:
                    self.simple(inner, None if text.endswith("dir") else folders)
                    at = end
            elif text in ("-fprint", "-fprint0", "-fprintf", "-fls") and at + 1 < len(args):
                self.path("write", args[at + 1].text, folders)
            elif any(text.startswith(f"{m}=") for m in markers) or (
                "-x" in markers and re.match(r"-\w*[xX]", text)
            ):
                self.dynamic(args)
            at += 1

    def _operands(self, name: str, args: list[Arg], folders: Folders) -> None:
        if name == "dd":
            for arg in args[1:]:
                if arg.text.startswith("of=") and arg.known:
                    self.path("write", arg.text[3:], folders)
            return
        which = _WRITERS.get(name)
        in_place = name in ("sed", "gsed") and any(re.match(r"-\w*i|--in", a.text) for a in args)
        if which is None and not in_place:
            return
        operands = [a for a in args[1:] if not a.text.startswith("-")]
        for arg in args[1:]:
            if which == "last" and (into := re.match(r"(?:-t|--target-directory=)(.+)", arg.text)):
                self.path("write", into[1], folders)
        for arg in operands[-1:] if which == "last" else operands[1:] if in_place else operands:
            if arg.known:
                self.path("write", arg.text, folders)

    def _cd(self, args: list[Arg], folders: Folders) -> After:
        self.exec(args)
        operands = [a for a in args[1:] if not re.fullmatch(r"-[LPe@]+|--", a.text)]
        if not operands:
            there: Folders = frozenset({self.home})
        elif not operands[0].known or operands[0].text == "-":
            there = None
        else:
            there = self._joined(operands[0].text, folders)
        return After(there, both(folders, there))

    # --- what is found --------------------------------------------------------------------------

    def exec(self, args: list[Arg]) -> None:
        self.found.append(("exec", canonical(args)))

    def _exec_from(self, args: list[Arg], folders: Folders) -> None:
        """A command whose program may be named by a path: from each folder that it may run in."""
        program = args[0].text
        if "/" not in program:
            self.exec(args)
            return
        paths = self._joined(program, folders)
        if paths is None:
            self.dynamic(args)
            return
        for path in sorted(paths):
            placed = self._placed(path)
            name = placed if placed.startswith("/") else f"./{placed}"
            self.exec([Arg(name), *args[1:]])

    def dynamic(self, args: Sequence[Arg]) -> None:
        self.found.append(("exec", f"<dynamic> {canonical(list(args))}"))

    def path(self, act: Act, text: str, folders: Folders) -> None:
        if _DEVICES.match(text):
            return
        paths = self._joined(text, folders)
        if paths is None:
            self.dynamic([Arg(">" if act == "write" else "<"), Arg(text)])
            return
        for path in sorted(paths):
            if not any(path == own or path.startswith(f"{own}/") for own in self.private):
                self.found.append((act, self._placed(self.resolve(path))))

    def _joined(self, text: str, folders: Folders) -> Folders:
        if text.startswith("/"):
            return frozenset({"/" + posixpath.normpath(text).lstrip("/")})
        if folders is None:
            return None
        return frozenset(posixpath.normpath(posixpath.join(folder, text)) for folder in folders)

    def _inside(self, path: str) -> bool:
        return path == self.root or path.startswith(f"{self.root}/")

    def _placed(self, path: str) -> str:
        """Relative to the workspace if inside, absolute outside."""
        if path == self.root:
            return "."
        return path[len(self.root) + 1 :] if self._inside(path) else path


def _program(text: str) -> str:
    name = posixpath.basename(text.replace("\\", "/")).casefold()
    return name.removesuffix(".exe")


def _is_code(arg: Arg) -> bool:
    """Whether a literal text holds a substitution that something may yet carry out."""
    return arg.known and bool(re.search(r"\$\(|`|\$\{", arg.text))


def _is_subscript_code(arg: Arg) -> bool:
    return bool(re.search(r"\w\[[^]]*(?:\$\(|`)", arg.text)) or "@P}" in arg.text


def _split_string(args: Sequence[Arg]) -> str | None:
    """The text of `env -S`; empty if it is not known."""
    for index, arg in enumerate(args[1:], start=1):
        found = re.match(r"-[iv0]*S(.*)|--split-string(?:=(.*))?", arg.text, re.DOTALL)
        if found is None:
            continue
        rest = [found[1] or found[2] or "", *(a.text for a in args[index + 1 :])]
        known = all(a.known for a in args[index:])
        return (
            " ".join(rest)
            if known and "\\" not in "".join(rest) and "$" not in "".join(rest)
            else ""
        )
    return None
