"""Fetches one commit of a git repository by URL, and pushes one branch to it."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from temporalio.exceptions import ApplicationError

from io_harness.workflows.contract import GitSource

from .failure import failure
from .git import Git, GitError
from .store import SnapshotStore, ref_of

_SCHEMES = ("https", "http", "ssh", "git", "file")
_SCP = re.compile(r"[\w.@-]+:(?!//)[^:]")
_PASSED = (
    "HOME", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSL_CAINFO", "SSL_CERT_FILE",
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY",
    "https_proxy", "http_proxy", "all_proxy", "no_proxy",
)  # fmt: skip
_UNADVERTISED = ("unadvertised object", "shallow", "not our ref")
_NO_REF = ("couldn't find remote ref", "not our ref", "Invalid refspec", "bad revision")
_NO_REPOSITORY = "does not appear to be a git repository"
NO_ACCESS = (
    "Authentication failed",
    "could not read Username",
    "Permission denied",
    "not found",
    _NO_REPOSITORY,
    "Host key verification failed",
    "does not exist",
)


def check_url(url: str) -> None:
    """Raises:
    ApplicationError: SourceUrlRefused, for what git would run or a secret would leak with.
    """
    parts = urlsplit(url)
    if "://" not in url:
        if url.startswith("/") or (_SCP.match(url) and not url.startswith("-")):
            return
    elif parts.scheme in _SCHEMES:
        if parts.password is not None:
            raise failure(
                "SourceUrlRefused",
                "workspace.url: it holds a password, which would be kept in history; set GIT_ASKPASS "
                "on the worker, or use ssh",
            )
        return
    raise failure(
        "SourceUrlRefused",
        f"workspace.url: {url!r} is none of {', '.join(_SCHEMES)}, user@host:path or an absolute "
        "path on the worker",
    )


def remote(store: SnapshotStore) -> Git:
    """git on the store that may talk to other hosts, as the worker's own user, without prompts."""
    passed = tuple((name, os.environ[name]) for name in _PASSED if name in os.environ)
    return Git(
        store.path,
        env=(
            *passed,
            ("GIT_ALLOW_PROTOCOL", ":".join(_SCHEMES)),
            ("GIT_SSH_COMMAND", os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")),
        ),
    )


async def fetch(store: SnapshotStore, source: GitSource, run_key: str) -> str:
    """The commit at the source's ref, with its files but, where the server can do that, without its
    history.

    Raises:
        ApplicationError: SourceUrlRefused, RefNotFound, SourceNotFound, or SourceUnreachable, which
            alone may be retried.
    """
    check_url(source.url)
    if source.ref.startswith(("-", "+")) or ":" in source.ref:
        raise failure("RefNotFound", f"workspace.ref: {source.ref!r} is no name of a ref or commit")
    git, kept = remote(store), ref_of(run_key, "upstream")
    options = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok")
    try:
        await git.run(*options, "--depth=1", "--", source.url, f"+{source.ref}:{kept}")
    except GitError as error:
        if not any(sign in error.stderr for sign in _UNADVERTISED) and not _is_id(source.ref):
            raise _explained(error, source) from error
        await _fetch_all(git, options, source, run_key, kept)
    try:
        return await git.line("rev-parse", "--verify", f"{kept}^{{commit}}")
    except GitError as error:
        raise failure("RefNotFound", f"workspace.ref: {source.ref!r} is not a commit") from error


async def _fetch_all(
    git: Git, options: tuple[str, ...], source: GitSource, run_key: str, kept: str
) -> None:
    """For servers that don't hand out a commit by id or without history."""
    space = ref_of(run_key, "all")
    try:
        await git.run(
            *options, "--", source.url, f"+refs/heads/*:{space}/heads/*",
            f"+refs/tags/*:{space}/tags/*", f"+HEAD:{space}/HEAD",
        )  # fmt: skip
    except GitError as error:
        raise _explained(error, source) from error
    for name in (f"{space}/heads/{source.ref}", f"{space}/tags/{source.ref}", source.ref):
        if source.ref == "HEAD":
            name = f"{space}/HEAD"
        found = await git.run(
            "rev-parse", "-q", "--verify", f"{name}^{{commit}}", codes=(0, 1, 128)
        )
        if found.code == 0:
            await git.run("update-ref", kept, found.stdout.decode().strip())
            break
    else:
        raise failure("RefNotFound", f"workspace.ref: {source.url} has no {source.ref!r}")
    listed = await git.out("for-each-ref", "--format=delete %(refname)", space)
    await git.run("update-ref", "--stdin", stdin=listed)


def _is_id(ref: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{7,40}", ref) is not None


def _explained(error: GitError, source: GitSource) -> ApplicationError:
    if error.disk_full:
        return failure("DiskFull", f"no space left on the worker: {error}")
    if any(sign in error.stderr for sign in _NO_REF):
        return failure("RefNotFound", f"workspace.ref: {source.url} has no {source.ref!r}")
    said = error.stderr.strip()
    if Path(source.url).is_absolute() and Path(source.url).is_dir() and _NO_REPOSITORY in said:
        return failure(
            "SourceNotFound",
            f"workspace.url: {source.url} is a directory, but no git repository; write it as "
            "workspace.kind 'directory' with a path",
        )
    if any(sign in said for sign in NO_ACCESS):
        return failure(
            "SourceNotFound",
            f"workspace.url: {source.url} doesn't exist, or the worker may not read it: {said}",
        )
    return failure("SourceUnreachable", f"workspace.url: {source.url}: {said}", retry=True)
