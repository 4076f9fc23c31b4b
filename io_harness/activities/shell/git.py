"""git: its global options moved out of the way, and the many ways in which it runs other programs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .words import Arg

_FLAGS = re.compile(
    r"-[pP]\Z|--(?:paginate|no-pager|no-optional-locks|no-replace-objects|no-lazy-fetch|no-advice"
    r"|(?:literal|glob|noglob|icase)-pathspecs)\Z"
)
_SAFE_SETTING = re.compile(
    r"(?:user\.(?:name|email)|color\.\w+|advice\.\w+|core\.(?:quotepath|autocrlf|abbrev|filemode"
    r"|longpaths|safecrlf|whitespace)|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|diff\.(?:algorithm"
    r"|renames|renamelimit|context|noprefix|mnemonicprefix)|merge\.conflictstyle|log\.\w+|status\.\w+"
    r"|column\.\w+|gc\.auto|maintenance\.auto|pull\.(?:rebase|ff)|push\.default|fetch\.prune"
    r"|rebase\.(?:autostash|autosquash)|safe\.directory|http\.postbuffer|protocol\.version)=.*\Z",
    re.IGNORECASE | re.DOTALL,
)
_KNOWN = re.compile(
    r"(?:add|am|annotate|apply|archive|bisect|blame|branch|bundle|cat-file|check-attr"
    r"|check-ignore|checkout|cherry|cherry-pick|clean|clone|commit|commit-graph"
    r"|commit-tree|config|count-objects|describe|diff|diff-files|diff-index|diff-tree"
    r"|difftool|fetch|fetch-pack|filter-branch|for-each-ref|format-patch|fsck|gc|grep"
    r"|hash-object|help|index-pack|init|interpret-trailers|log|ls-files|ls-remote|ls-tree"
    r"|maintenance|merge|merge-base|merge-file|merge-tree|mergetool|mktag|mktree|mv"
    r"|name-rev|notes|pack-objects|pack-refs|patch-id|prune|pull|push|range-diff|read-tree"
    r"|rebase|reflog|remote|repack|replace|request-pull|rerere|reset|restore|rev-list"
    r"|rev-parse|revert|rm|send-pack|shortlog|show|show-branch|show-index|show-ref"
    r"|sparse-checkout|stash|status|stripspace|submodule|switch|symbolic-ref|tag"
    r"|unpack-objects|update-index|update-ref|update-server-info|var|verify-commit"
    r"|verify-pack|verify-tag|version|whatchanged|worktree|write-tree)\Z"
    r"|--(?:version|help|html-path|exec-path|man-path|info-path)\Z|-[hv]\Z"
)
"""Commands of git itself; another word may be an alias or a program named git-WORD."""
_RUNS_PROGRAMS = frozenset({"filter-branch", "difftool", "mergetool"})
_OPTIONS: dict[str, str] = {
    "rebase": r"-\w*[xi]|--e|--i",
    "bisect": r"run\Z|visualize|view",
    "submodule": r"foreach\Z",
    "grep": r"-\w*O|--op",
    "diff": r"--ext|--textconv|-\w*O",
    "log": r"--ext",
    "show": r"--ext",
    "format-patch": r"--ext",
    "clone": r"-\w*[uc]|--up|--te|--con|ext::",
    "fetch": r"--up|ext::",
    "pull": r"--up|ext::",
    "push": r"--rec|--exe|ext::",
    "fetch-pack": r"--up|--exe|ext::",
    "send-pack": r"--rec|--exe|ext::",
    "ls-remote": r"--up|--exe|ext::",
    "archive": r"--exe|--rem|ext::",
    "remote": r"add\Z|set-url\Z|ext::",
    "init": r"--te",
    "am": r"-\w*i",
    "add": r"-\w*[ie]|--e\w|--i",
    "commit": r"-\w*[ep]|--ed|--te",
    "tag": r"-\w*e|--ed",
    "merge": r"-\w*s\Z|--str",
    "cat-file": r"--te|--fil",
    "help": r"-\w*[wim]|--w|--m|--i",
    "interpret-trailers": r".",
    "notes": r"edit",
    "branch": r"--ed",
    "replace": r"-e|--ed",
    "apply": r"--build",
    "maintenance": r"start|register",
}
"""Words of a command (regular expressions of their beginnings) with which it runs another program,
or a hook or helper that was brought along."""
_QUERY = frozenset({"-l", "--list", "--get", "--get-all", "--get-regexp", "get", "list"})


@dataclass(frozen=True)
class GitCall:
    words: list[Arg]
    """`git COMMAND ...`, without global options."""
    opaque: bool
    folder: Arg | None
    """Of `-C`."""


def read_git(args: Sequence[Arg]) -> GitCall:
    """Take apart a call of git; `args[0]` is the program."""
    opaque = False
    folder: Arg | None = None
    at = 1
    while at < len(args):
        text = args[at].text
        value = args[at + 1] if at + 1 < len(args) else None
        if not args[at].known:
            break
        if _FLAGS.match(text):
            at += 1
        elif text == "-C" and value is not None:
            opaque = opaque or folder is not None
            folder = value
            at += 2
        elif text == "-c" and value is not None:
            opaque = opaque or not (value.known and _SAFE_SETTING.match(value.text))
            at += 2
        elif _KNOWN.match(text):
            break
        elif text.startswith("-"):
            opaque = True  # --git-dir, --work-tree, --exec-path=, --config-env, -cNAME=...
            valued = "--git-dir --work-tree --namespace --config-env --super-prefix --attr-source"
            at += 2 if text in valued.split() else 1
        else:
            break
    rest = list(args[at:])
    opaque = opaque or (folder is not None and not folder.known) or _runs_programs(rest)
    return GitCall([args[0], *rest], opaque, folder)


def _runs_programs(rest: Sequence[Arg]) -> bool:
    if not rest:
        return False
    command = rest[0].text
    if not rest[0].known or not _KNOWN.match(command) or command in _RUNS_PROGRAMS:
        return True
    texts = [arg.text for arg in rest[1:]]
    if any(text.startswith("--ou") for text in texts):
        return True  # --output=FILE, with everything that shows a diff
    if command == "config":
        return not _is_query(texts)
    pattern = _OPTIONS.get(command)
    if pattern is None:
        return False
    if command == "commit":
        texts = _without_messages(texts)
    return any(re.match(pattern, text) for text in texts)


def _is_query(texts: Sequence[str]) -> bool:
    """Whether `git config` only shows settings, or sets one that can run nothing."""
    if any(text in _QUERY for text in texts):
        return True
    words = [text for text in texts if not text.startswith("-")]
    options = [text for text in texts if text.startswith("-")]
    if set(options) - {"--local", "--global", "--show-origin", "--show-scope", "--null", "-z"}:
        return False
    return len(words) == 1 or (len(words) == 2 and bool(_SAFE_SETTING.match("=".join(words))))


def _without_messages(texts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for text in texts:
        if skip:
            skip = False
        elif re.fullmatch(r"-[a-zA-Z]*[mFCc]|--(?:message|file|author|date|fixup|squash)", text):
            skip = True
        elif not re.match(r"-[a-zA-Z]*[mF].", text):
            kept.append(text)
    return kept
