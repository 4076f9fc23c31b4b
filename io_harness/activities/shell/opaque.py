"""Programs that run code or commands which the command line only carries as text or names indirectly.
Such a call is opaque: what it does can't be known from its words.

The tables follow the programs' manuals. They name what is known to run code; a program that isn't here
is judged by its own name alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .words import Arg

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "posh", "yash"})
"""Shells whose `-c` text is parsed here."""


@dataclass(frozen=True)
class Interpreter:
    """A program that runs a file, or code given otherwise."""

    code: str = ""
    """Letters of options that bring code."""
    code_long: tuple[str, ...] = ()
    valued: str = ""
    """Letters of other options with a value."""
    reads_stdin: bool = True
    """Runs its standard input when it is given no file."""
    words: tuple[str, ...] = ()
    """First operands that bring code (`deno eval`)."""


_JS = ("eval", "print", "require", "import", "loader", "experimental-loader")
_INTERPRETERS: dict[str, Interpreter] = {
    "python": Interpreter("c", valued="WXm"),
    "pypy": Interpreter("c", valued="WXm"),
    "perl": Interpreter("eEM", valued="I"),
    "ruby": Interpreter("er", valued="ICE"),
    "node": Interpreter("epr", _JS, valued="C"),
    "nodejs": Interpreter("epr", _JS, valued="C"),
    "bun": Interpreter("epr", _JS, reads_stdin=False),
    "deno": Interpreter(words=("eval", "repl"), reads_stdin=False),
    "php": Interpreter("rBRE", ("run", "process-code"), valued="dcfz"),
    "lua": Interpreter("el", valued=""),
    "luajit": Interpreter("elj", valued=""),
    "r": Interpreter("e", reads_stdin=True),
    "rscript": Interpreter("e"),
    "julia": Interpreter("eEL", ("eval", "print", "load")),
    "elixir": Interpreter("er", ("eval", "rpc-eval")),
    "erl": Interpreter(code_long=("eval",)),
    "ghc": Interpreter("eF", reads_stdin=False),
    "swift": Interpreter("e"),
    "scala": Interpreter("e"),
    "groovy": Interpreter("e"),
    "tclsh": Interpreter(),
    "wish": Interpreter(),
    "guile": Interpreter("cl"),
    "sbcl": Interpreter(code_long=("eval", "load")),
    "osascript": Interpreter("e"),
    "m4": Interpreter(),
    "dc": Interpreter("e"),
    "sqlite3": Interpreter(reads_stdin=True),
}
_CODE_MODULES = frozenset({"timeit", "pdb", "code", "asyncio", "runpy", "trace", "IPython"})
_STREAM = re.compile(r"-\Z|/dev/(?:stdin|fd/)|/proc/(?:self|\d+|thread-self)/fd/")
"""Standard input, or another open file, as the name of a script."""
_QUESTIONS = frozenset({"--version", "-V", "-v", "--help", "-h", "-?", "version", "help"})

_ALWAYS = re.compile(
    r"(?:parallel|at|batch|crontab|gdb|lldb|rr|ed|ex|expect|pwsh|powershell|cmd|csh|tcsh|fish|nu|xonsh"
    r"|elvish|screen|tmux|socat|run-parts|start-stop-daemon|systemd-run|entr|nodemon|watchexec|ssh|mosh"
    r"|rsh|nsenter|unshare|lxc-attach|machinectl|firejail|proxychains4?|torify|logrotate|gtester|reptyr"
    r"|setarch|linux32|linux64|update-alternatives|rlwrap|watchman|flock|watch|hyperfine|dotenv|cross-env|concurrently"
    r"|npm-run-all|runuser|su|script|capsh|genie|rc|rview|sg|pkexec|gksudo|please|run0|xdotool"
    r"|vagrant|ansible|octave|octave-cli|openvpn|newgrp)\Z"
)
"""Their arguments are commands in a language of their own, or run where nothing here holds."""

_LONG_OPTIONS: dict[str, tuple[str, ...]] = {
    "tar": ("checkpoint-action", "to-command", "use-compress-program", "rmt-command", "rsh-command",
            "info-script", "new-volume-script"),
    "bsdtar": ("use-compress-program",),
    "zip": ("unzip-command",),
    "rsync": ("rsh", "rsync-path"),
    "rg": ("pre", "hostname-bin"),
    "split": ("filter",),
    "sort": ("compress-program",),
    "wget": ("use-askpass", "execute", "config"),
    "curl": ("config",),
    "man": ("pager", "html"),
    "make": ("eval",),
    "gmake": ("eval",),
    "cargo": ("config",),
    "npm": ("script-shell", "node-options", "git"),
    "pnpm": ("script-shell", "node-options"),
    "yarn": ("script-shell",),
    "pip": ("python", "config-settings"),
    "emacs": ("eval", "load", "funcall", "execute", "script"),
    "mysql": ("execute", "pager"),
    "nmap": ("script",),
    "gcc": ("wrapper",), "g++": ("wrapper",), "cc": ("wrapper",), "c++": ("wrapper",),
    "apt-get": ("option",), "apt": ("option",),
    "less": ("cmd",), "more": ("cmd",),
    "jest": ("globalsetup",),
    "zstd": (), "ag": ("pager",), "diff": (), "sdiff": ("diff-program",), "diff3": ("diff-program",),
}  # fmt: skip
"""Long options that bring a command; an abbreviation of one counts."""

_LETTERS: dict[str, str] = {
    "tar": "IF", "bsdtar": "I", "rsync": "e", "man": "PH", "scp": "SoF", "sftp": "SoFbD", "wget": "e",
    "curl": "K", "vim": "cSsu", "vi": "cSsu", "nvim": "cSslu", "view": "cSsu", "vimdiff": "cSsu",
    "nc": "ec", "ncat": "ec", "netcat": "ec", "mysql": "e", "apt-get": "o", "apt": "o", "nano": "s",
    "cscope": "F", "ctags": "L", "xterm": "e", "zip": "T", "psql": "cf", "emacs": "lf", "ip": "b",
    "pg_dump": "", "pry": "e", "irb": "r", "iex": "e",
}  # fmt: skip
"""Single letters that bring a command, anywhere in a cluster."""

_WORDS: dict[str, re.Pattern[str]] = {
    "go": re.compile(r"--?(?:toolexec|exec|vettool)\b"),
    "gcc": re.compile(r"-(?:wrapper|fplugin|specs|B)"),
    "clang": re.compile(r"-(?:fplugin|Xclang|B)"),
    "rustc": re.compile(r"(?:-C)?linker="),
    "java": re.compile(r"-XX:On|-agent|-javaagent|@"),
    "make": re.compile(
        r"-\Z|-\w*f-|-\w*f?/dev/|/dev/|(?:[.]?SHELL[A-Z]*|MAKEFLAGS|MAKE)\s*[:?!+]?="
    ),
    "gmake": re.compile(r"-\Z|-\w*f-|/dev/|(?:[.]?SHELL[A-Z]*|MAKEFLAGS|MAKE)\s*[:?!+]?="),
    "cmake": re.compile(r"-E\Z|-P\Z"),
    "vim": re.compile(r"\+|--cmd|--remote"),
    "vi": re.compile(r"\+|--cmd"),
    "nvim": re.compile(r"\+|--cmd|--remote|--headless"),
    "less": re.compile(r"\+"),
    "more": re.compile(r"\+"),
    "sqlite3": re.compile(r"[.]|-cmd|-init"),
    "psql": re.compile(r".*\\"),
    "ld": re.compile(r"--?plugin"),
    "docker": re.compile(r"--entrypoint"),
    "rpm": re.compile(r"--eval|-E|--pipe"),
    "gem": re.compile(r"-\w*e"),
    "latex": re.compile(r".*(?:shell-escape|write18)"),
    "pdflatex": re.compile(r".*(?:shell-escape|write18)"),
    "xelatex": re.compile(r".*(?:shell-escape|write18)"),
    "openssl": re.compile(r"engine|-engine|-provider"),
}
"""Beginnings of words that bring a command."""

_VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|php|node|tclsh|gcc|g\+\+|clang)[-]?\d[\d.]*\Z")


def is_stream(name: str) -> bool:
    """Whether a file name stands for an open file, whose content the command line doesn't show."""
    return bool(_STREAM.match(name))


def base_name(name: str) -> str:
    """The program's name without a version (`python3.12`)."""
    found = _VERSIONED.match(name)
    return found[1] if found else name


def is_opaque(name: str, args: Sequence[Arg]) -> bool:
    """Whether a call of the program `name` (a base name) with these words after it is opaque."""
    if _ALWAYS.match(name):
        return True
    if name in ("awk", "gawk", "mawk", "nawk", "original-awk", "goawk"):
        return _awk(args)
    if name in ("sed", "gsed", "ssed"):
        return _sed(args)
    if name in _INTERPRETERS and _interpreter(_INTERPRETERS[name], args):
        return True
    if name in ("python", "pypy") and _python_module(args):
        return True
    texts = [arg.text for arg in args]
    if name in ("tar", "bsdtar") and texts and re.search("[IF]", texts[0]) and "/" not in texts[0]:
        return True
    return _has_option(name, texts)


def _has_option(name: str, texts: Sequence[str]) -> bool:
    words = _WORDS.get(name)
    for text in texts:
        if words is not None and words.match(text):
            return True
        if text.startswith("--") and len(text) > 3:
            given = text[2:].partition("=")[0]
            if any(option.startswith(given) for option in _LONG_OPTIONS.get(name, ())):
                return True
        elif text.startswith("-") and set(text[1:]) & set(_LETTERS.get(name, "")):
            return True
    return False


def _interpreter(spec: Interpreter, args: Sequence[Arg]) -> bool:
    if args and all(arg.text in _QUESTIONS for arg in args):
        return False
    at = 0
    while at < len(args):
        text = args[at].text
        if not args[at].known:
            return True
        if _STREAM.match(text):
            return True
        if not text.startswith("-"):
            return text in spec.words
        at += 1
        if text == "--":
            break
        if text.startswith("--") or text.lstrip("-") in spec.code_long:
            given = text.lstrip("-").partition("=")[0]
            if any(option.startswith(given) for option in spec.code_long):
                return True
            continue
        for index, letter in enumerate(text[1:], start=1):
            if letter in spec.code:
                return True
            if letter in spec.valued:
                if letter == "m":
                    return False  # a module, which gets the rest
                at += 0 if index + 1 < len(text) else 1
                break
    return spec.reads_stdin and at >= len(args)


def _python_module(args: Sequence[Arg]) -> bool:
    for before, after in pairwise(args):
        if re.fullmatch(r"-[A-Za-z]*m", before.text):
            return after.text in _CODE_MODULES or not after.known
    return any(re.fullmatch(rf"-[A-Za-z]*m({'|'.join(_CODE_MODULES)})", a.text) for a in args[:3])


_AWK_DANGER = re.compile(r"system|\||getline|>|@|ENVIRON|fflush|close|extension|load|include")


def _awk(args: Sequence[Arg]) -> bool:
    at = 0
    while at < len(args):
        arg = args[at]
        if not arg.known:
            return True
        if not arg.text.startswith("-") or arg.text == "-":
            return bool(_AWK_DANGER.search(_without_comparison(arg.text)))
        if re.fullmatch(r"-[Fv]", arg.text):
            at += 1
        elif not re.match(r"-[Fv].|--(?:version|help|re-interval|posix|csv)\Z", arg.text):
            return True  # -f, -e, -E, -i, -l and the like bring code from elsewhere
        at += 1
    return False


def _without_comparison(program: str) -> str:
    """Without `||` and `>` outside of statements: conditions, not pipes or files."""
    conditions = re.sub(r"\|\|", " ", program)
    return re.sub(r"(?<=\d)\s*>=?\s*(?=\d)|[$\w)\]]+\s*>=?\s*-?[\d$][\w.]*(?=\s*(?:[{&)]|\Z))", " ",
                  conditions)  # fmt: skip


_SED_COMMAND = re.compile(
    r"""(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:,[+~]?(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?\s*!?\s*)?
    (?:[dDpPgGhHnNx=]
      |[qQ]\d*
      |s(?P<d>[^\w\s\\;])(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n]|\\.)*(?P=d)[gipImM0-9]*
      |y(?P<e>[^\w\s\\;])(?:(?!(?P=e))[^\\\n]|\\.)*(?P=e)(?:(?!(?P=e))[^\\\n]|\\.)*(?P=e)
      |[aic]\\?[ ]?[^\n\\]*\Z
    )\s*(?:[;\n]\s*|\Z)""",
    re.VERBOSE,
)


def _sed(args: Sequence[Arg]) -> bool:
    """sed's `e`, `w` and `s///e` run commands and write files; only scripts of harmless commands are
    not opaque."""
    scripts: list[str] = []
    operands: list[str] = []
    at = 0
    while at < len(args):
        arg = args[at]
        text = arg.text
        at += 1
        if not arg.known:
            operands.append("\0")
        elif text in ("-e", "--expression"):
            scripts.append(args[at].text if at < len(args) and args[at].known else "\0")
            at += 1
        elif text.startswith("--expression="):
            scripts.append(text.partition("=")[2])
        elif not text.startswith("-") or text == "-":
            operands.append(text)
        elif not re.fullmatch(
            r"-[nErsuz]+|-[nErsuz]*i(?:\.\w+)?|--(?:quiet|silent|regexp-extended|in-place(?:=\.\w+)?"
            r"|version|help|null-data|separate|posix|debug|sandbox)",
            text,
        ):
            return True
    if not scripts and operands:
        scripts = operands[:1]
    return any(not _harmless_sed(script) for script in scripts)


def _harmless_sed(script: str) -> bool:
    at = 0
    script = script.strip()
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return True
