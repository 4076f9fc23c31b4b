"""What decides, besides its words, which program a command runs."""

import re
from itertools import takewhile

from .words import Arg

_VARIABLES = re.compile(
    r"(?:PATH|IFS|ENV|BASH_(?:ENV|FUNC.*|CMDS|ALIASES|LOADABLES_PATH)|SHELL|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|HOME|CDPATH"
    r"|XDG_CONFIG_HOME|LD_.*|DYLD_.*|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT\Z).*|SSH_ASKPASS|PAGER"
    r"|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|MANPAGER|MANOPT|PYTHONSTARTUP|PYTHONHOME|PYTHONBREAKPOINT"
    r"|PYTHONINSPECT|PYTHONUSERBASE|PERL5OPT|PERL5LIB|PERL5DB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS"
    r"|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|RUSTC|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER|CARGO_BUILD_RUSTC.*"
    r"|CARGO_TARGET_.*_(?:RUNNER|LINKER)|MAKEFLAGS|MAKEFILES|GOFLAGS|GOTOOLDIR|npm_config_script_shell"
    r"|NPM_CONFIG_SCRIPT_SHELL|TAR_OPTIONS|RSYNC_RSH|CVS_RSH|SVN_SSH|LUA_INIT.*|AWKPATH|GCC_EXEC_PREFIX"
    r"|COMPILER_PATH|NODE_OPTIONS|RIPGREP_CONFIG_PATH|WGETRC|CURL_HOME|GAWK_.*|FCEDIT|GLOBIGNORE|EXECIGNORE)\Z"
)
_SHOWS = re.compile(r"(?:GIT_|MAN)?PAGER\Z|(?:GIT_|GIT_SEQUENCE_)?EDITOR\Z|VISUAL\Z")
"""Of these, a program that does nothing is a harmless value."""
_DECLARE = frozenset({"export", "declare", "typeset", "local", "readonly"})
_EVALUATE = frozenset({"printf", "test", "[", "[[", "read", "unset", "let", *_DECLARE})
"""Builtins that evaluate subscripts, and with them substitutions, in their arguments."""


def steers(variable: str, value: str | None = None) -> bool:
    """Whether a variable (with this value) decides which program runs, or with what code."""
    if _SHOWS.match(variable) and value in ("", "cat", "true", ":"):
        return False
    return bool(_VARIABLES.match(variable))


def holds_code(arg: Arg) -> bool:
    """Whether a literal text holds a substitution that something may yet carry out."""
    return arg.known and bool(re.search(r"\$\(|`|\$\{", arg.text))


def holds_subscript_code(arg: Arg) -> bool:
    """Whether a text is a subscript that arithmetic would evaluate, or is expanded like a prompt."""
    return bool(re.search(r"\w\[[^]]*(?:\$\(|`)", arg.text)) or "@P}" in arg.text


def sets_steering(name: str, args: list[Arg]) -> bool:
    """Whether a builtin sets a variable that steers, or evaluates code in its arguments."""
    if name in _EVALUATE and any(holds_code(arg) for arg in args):
        return True
    if name == "set":  # -k: words like NAME=value behind a command are assignments
        options = takewhile(lambda arg: arg.text != "--", args)
        return any(re.match(r"-\w*k|keyword\Z", o.text) or not o.known for o in options)
    if name in _DECLARE or name in ("read", "unset"):
        return any(steers(*arg.text.split("=", 1)) for arg in args)
    return False
