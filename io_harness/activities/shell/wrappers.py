"""Programs that run another command given among their arguments, and how to find it.

The tables follow the programs' manuals (GNU coreutils, util-linux, findutils, sudo, bash, uv, npm).
An option that isn't in the table makes the command opaque: it might take the next word as its value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .words import Arg


@dataclass(frozen=True)
class Options:
    """Which options a program takes before its operands."""

    flags: str = ""
    """Letters without a value."""
    valued: str = ""
    """Letters with one."""
    long: tuple[str, ...] = ()
    """Without a value, or with one only after `=`."""
    long_valued: tuple[str, ...] = ()
    numbers: bool = False
    """Takes options like `-10`."""
    dash: bool = False
    """Takes `-` for an option."""

    def operands(self, args: Sequence[Arg], at: int) -> int | None:
        """Index of the first operand from `at` on; None if an option isn't known."""
        while at < len(args):
            arg = args[at]
            if not arg.known:
                return None
            text = arg.text
            if text == "--":
                return at + 1
            if text == "-" and self.dash:
                at += 1
                continue
            if text == "-" or not text.startswith("-"):
                return at
            if text.startswith("--"):
                name, equals, _ = text[2:].partition("=")
                if name in self.long_valued:
                    at += 1 if equals else 2
                elif name in self.long:
                    at += 1
                else:
                    return None
            elif self.numbers and text[1:].lstrip("-").isdecimal():
                at += 1
            else:
                step = self._cluster(text[1:])
                if step is None:
                    return None
                at += step
        return at

    def _cluster(self, letters: str) -> int | None:
        for index, letter in enumerate(letters):
            if letter in self.valued:
                return 1 if index + 1 < len(letters) else 2
            if letter not in self.flags:
                return None
        return 1


@dataclass(frozen=True)
class Wrapper:
    """A program whose operands are a command."""

    options: Options = Options()
    before: int = 0
    """Operands that come before the command."""
    assignments: bool = False
    """NAME=value words come before the command."""


_PLAIN = (
    *(
        "catchsegv",
        "prlimit",
        "choom",
        "chpst",
        "cpulimit",
        "pexec",
        "multitime",
        "logsave",
        "valgrind",
    ),
    *(
        "sshpass",
        "ssh-agent",
        "dbus-launch",
        "torsocks",
        "chronic",
        "ts",
        "numactl",
        "cgexec",
        "cgroup",
    ),
    *("caffeinate", "arch", "xcrun", "eatmydata", "fakeroot", "dbus-run-session"),
)
"""Wrappers of which any option makes the command opaque."""

WRAPPERS: dict[tuple[str, ...], Wrapper] = {
    ("command",): Wrapper(Options("p")),
    ("builtin",): Wrapper(),
    ("exec",): Wrapper(Options("cl", "a")),
    ("coproc",): Wrapper(),
    ("time",): Wrapper(
        Options("pavqV", "fo", ("portability", "append", "verbose", "quiet"), ("format", "output"))
    ),
    ("nohup",): Wrapper(),
    ("nice",): Wrapper(Options("", "n", (), ("adjustment",), numbers=True)),
    ("ionice",): Wrapper(Options("t", "cn", ("ignore",), ("class", "classdata"))),
    ("chrt",): Wrapper(Options("abdfioRrv", "TPD"), before=1),
    ("taskset",): Wrapper(Options("ac"), before=1),
    ("stdbuf",): Wrapper(Options("", "ioe", (), ("input", "output", "error"))),
    ("unbuffer",): Wrapper(Options("p")),
    ("setsid",): Wrapper(Options("cfw", "", ("ctty", "fork", "wait"))),
    ("timeout",): Wrapper(
        Options("fpv", "ks", ("foreground", "preserve-status", "verbose"), ("kill-after", "signal")),
        before=1,
    ),
    ("gtimeout",): Wrapper(Options("fpv", "ks"), before=1),
    ("env",): Wrapper(
        Options(
            "iv0", "uC", ("ignore-environment", "null", "debug"), ("unset", "chdir"), dash=True
        ),
        assignments=True,
    ),
    ("xargs",): Wrapper(
        Options(
            "0rtxpo", "nIPLsdEa",
            ("null", "no-run-if-empty", "verbose", "exit", "interactive", "open-tty", "replace",
             "max-lines"),
            ("max-args", "max-procs", "max-chars", "delimiter", "arg-file"),
        )
    ),
    ("sudo",): Wrapper(
        Options("AbEHknPS", "ugphCrtTURD", ("non-interactive", "preserve-env", "set-home"),
                ("user", "group", "prompt", "host", "chdir")),
        assignments=True,
    ),
    ("doas",): Wrapper(Options("Ln", "uC"), assignments=True),
    ("chroot",): Wrapper(Options("", "", ("skip-chdir",), ("userspec", "groups")), before=1),
    ("busybox",): Wrapper(),
    ("toybox",): Wrapper(),
    ("strace",): Wrapper(Options("fFhqrtTvVxyzCcikwD", "oepPsaObEIXS")),
    ("ltrace",): Wrapper(Options("fhirtTVSCcL", "oepPsaluxnAF")),
    **{(name,): Wrapper() for name in _PLAIN},
    ("xvfb-run",): Wrapper(Options("al", "enfpsw", ("auto-servernum",), ("server-args",))),
    ("setpriv",): Wrapper(Options("", "", ("no-new-privs", "clear-groups"), ("reuid", "regid"))),
    ("logsave",): Wrapper(before=1),
    ("perf", "stat"): Wrapper(),
    ("perf", "record"): Wrapper(),
    ("ip", "netns", "exec"): Wrapper(before=1),
    ("uv", "run"): Wrapper(
        Options("qv", "p", ("frozen", "locked", "no-sync", "isolated", "quiet", "offline", "active",
                            "all-extras", "no-project", "no-dev", "exact"),
                ("with", "extra", "group", "python", "project", "package", "directory", "only-group"))
    ),
    ("uvx",): Wrapper(Options("qv", "p", ("quiet", "isolated"), ("from", "with", "python"))),
    ("uv", "tool", "run"): Wrapper(Options("q", "p", ("quiet",), ("from", "with", "python"))),
    ("poetry", "run"): Wrapper(Options("qn")),
    ("pipenv", "run"): Wrapper(),
    ("pdm", "run"): Wrapper(),
    ("rye", "run"): Wrapper(),
    ("hatch", "run"): Wrapper(),
    ("bundle", "exec"): Wrapper(),
    ("npx",): Wrapper(Options("yq", "p", ("yes", "no", "no-install", "quiet"), ("package",))),
    ("npm", "exec"): Wrapper(Options("y", "", ("yes", "no"), ("package",))),
    ("npm", "x"): Wrapper(Options("y", "", ("yes", "no"), ("package",))),
    ("pnpm", "exec"): Wrapper(),
    ("pnpm", "dlx"): Wrapper(Options("", "", (), ("package",))),
    ("yarn", "exec"): Wrapper(),
    ("yarn", "dlx"): Wrapper(Options("q", "p", ("quiet",), ("package",))),
    ("bunx",): Wrapper(),
    ("bun", "x"): Wrapper(),
    ("mise", "exec"): Wrapper(Options("", "")),
    ("asdf", "exec"): Wrapper(),
    ("rustup", "run"): Wrapper(before=1),
    ("direnv", "exec"): Wrapper(before=1),
}  # fmt: skip


def wrapped(names: Sequence[str], args: Sequence[Arg]) -> tuple[Wrapper, int] | None:
    """The wrapper that these words begin with, and how many words name it."""
    for length in (3, 2, 1):
        key = tuple(names[:length])
        if len(key) == length and key in WRAPPERS and all(arg.known for arg in args[:length]):
            return WRAPPERS[key], length
    return None


def wraps_after_options(name: str, args: Sequence[Arg]) -> bool:
    """Whether this may be a wrapper of several words with options between them
    (`npm --prefix x exec`)."""
    seconds = {key[1] for key in WRAPPERS if len(key) > 1 and key[0] == name}
    options = bool(args) and args[0].text.startswith("-")
    return bool(seconds) and options and any(a.text in seconds or not a.known for a in args)
