"""Commands that destroy. They ask even where their program is allowed.

`<destroy>`: what is lost can't be had back from the run's own snapshots, because it lies outside the
workspace or is the whole of it. `<discard>`: work in the workspace is thrown away.
"""

import posixpath
import re
from collections.abc import Sequence

from io_harness.workflows.patterns import command_matches

from .words import Arg, canonical

_GIT_DISCARD = {
    "reset": r"--(?:h|me)[\w-]*\Z",
    "checkout": r"-\w*f|--f\w*\Z|[.*]\Z|:/|\./\Z",
    "restore": r"[.*]\Z|:/|\./\Z",
    "switch": r"-\w*f|--(?:f|di)[\w-]*\Z",
    "branch": r"-\w*D|--f",
    "stash": r"(?:drop|clear)\Z",
    "reflog": r"(?:expire|delete|drop)\Z",
    "update-ref": r"-d|--stdin",
    "worktree": r"-\w*f|--f",
    "gc": r"--pr",
    "prune": r"",
    "filter-branch": r"",
    "filter-repo": r"",
}
_GIT_DESTROY = {"push": r"-\w*[fd]|--(?:f(?!ol)|mi|de|pr)|\+|:\S"}
"""Commands of git to the beginning of a word with which they lose what no commit holds, or what others
have. git takes any unambiguous beginning of a long option."""
_DESTROY = (
    "mkfs*",
    "wipefs",
    "shred",
    "fdisk",
    "sfdisk",
    "parted",
    "blkdiscard",
    "shutdown",
    "reboot",
    "poweroff",
    "halt",
    "terraform destroy",
    "terraform apply -destroy",
    "pulumi destroy",
    "kubectl delete",
    "helm uninstall",
    "helm delete",
    "docker system prune",
    "docker volume rm",
    "docker volume prune",
    "gh repo delete",
    "gh release delete",
    "npm unpublish",
    "aws s3 rm",
    "aws s3 rb",
    "gsutil rm",
    "dropdb",
    "redis-cli flushall",
    "crontab -r",
    "userdel",
)
_FILTERS = re.compile(
    r"-i?(?:name|path|wholename|regex)\Z|-(?:empty|newer\w*|[amc](?:time|min)|size|user|group|perm|links"
    r"|inum|samefile|lname|mindepth)\Z"
)
_SYSTEM_TREES = re.compile(
    r"/(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library"
    r"|Applications)?\Z"
)


def danger_of(args: Sequence[Arg], folder: str | None, root: str, home: str) -> str | None:
    """`<destroy>`, `<discard>` or None for a simple command run in `folder` (None: unknown).

    `args[0]` is the base name of the program; git comes without its global options.
    """
    name, words = args[0].text, list(args[1:])
    if name == "git" and words:
        return _git(words[0].text, words[1:])
    command = canonical(list(args))
    if any(command_matches(pattern, command, wide=True) == "yes" for pattern in _DESTROY):
        return "<destroy>"
    if name == "dd" and any(re.match(r"of=/dev/(?!null|stdout|stderr)", a.text) for a in words):
        return "<destroy>"
    losses = [_loss(tree, folder, root, home) for tree in _trees(name, words)]
    return next((mark for mark in ("<destroy>", "<discard>") if mark in losses), None)


def _git(command: str, words: Sequence[Arg]) -> str | None:
    def has(pattern: str) -> bool:
        return pattern == "" or any(re.match(pattern, word.text) for word in words)

    if command == "clean":
        forced = has(r"-\w*f|--f") or any(not word.known for word in words)
        return "<discard>" if forced and not has(r"-\w*n|--dr") else None
    if command in _GIT_DESTROY and has(_GIT_DESTROY[command]):
        return "<destroy>"
    if command in _GIT_DISCARD and has(_GIT_DISCARD[command]):
        return "<discard>"
    return None


def _trees(name: str, words: Sequence[Arg]) -> list[Arg]:
    """The trees that the command removes or changes as a whole."""
    options = [a.text for a in words if a.text.startswith("-") and len(a.text) > 1]
    operands = [a for a in words if not a.text.startswith("-") or not a.known]
    recursive = any(re.match(r"-[a-zA-Z]*[rR]|--rec", option) for option in options)
    if name == "rm":
        return operands if recursive else []
    if name in ("chmod", "chown", "chgrp"):
        return operands[1:] if recursive else []
    if name in ("mv", "rmdir"):
        return operands[:-1] if name == "mv" else operands
    if name == "find":
        text = " ".join(a.text for a in words)
        removes = "-delete" in text or re.search(
            r"-(?:exec|ok)(?:dir)? (?:\S*/)?(?:rm|shred)\b", text
        )
        if removes and not any(_FILTERS.match(a.text) for a in words):
            first = next((i for i, a in enumerate(words) if a.text[:1] in "-(!"), len(words))
            return list(words[:first]) or [Arg(".")]
    if name == "rsync" and any(option.startswith("--del") for option in options):
        return operands[-1:]
    return []


def _loss(tree: Arg, folder: str | None, root: str, home: str) -> str | None:
    """What is lost with a tree."""
    text = tree.text
    if not tree.known and not tree.glob and not text.startswith((home, "/")):
        return "<discard>"
    # `dir/*` and `dir/.[!.]*` are what is in `dir`.
    whole = re.sub(r"(?:^|/)(?:\.?\*+|\.\[[^]]*\]\*|\.\?\?\*|\{[*.,]+\})\Z", "", text)
    if whole != text:
        text = whole or ("/" if text.startswith("/") else ".")
    if not text.startswith("/") and folder is None:
        return "<discard>"
    path = posixpath.normpath(posixpath.join(folder or "/", text))
    path = "/" + path.lstrip("/")
    if _SYSTEM_TREES.match(path):
        return "<destroy>"
    for kept in (root, home):
        if path == kept or kept.startswith(path.rstrip("/") + "/"):
            return "<destroy>"
    if path.startswith(root + "/"):
        return "<destroy>" if path == f"{root}/.git" else None
    if path.startswith(("/tmp/", "/dev/shm/")):
        return None
    return "<destroy>"
