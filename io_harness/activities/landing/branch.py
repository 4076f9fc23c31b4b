"""Lands as a commit on a branch of the source repository. Its working tree, index and current branch
stay as they are."""

import dataclasses
import os
import time
from pathlib import Path

from temporalio.exceptions import ApplicationError

from io_harness.activities.failure import failure
from io_harness.activities.git import Git, GitError
from io_harness.activities.git_url import NO_ACCESS, remote
from io_harness.activities.source import Repository, directory_of
from io_harness.activities.staging import drop_within
from io_harness.activities.store import Conflict, SnapshotStore
from io_harness.workflows.contract import DirectorySource, GitSource
from io_harness.workflows.payloads import LandInput
from io_harness.workflows.result import LandConflict, Landed

from .report import landed
from .targets import as_owner, is_taken, repository_to_land_in, resolved, trailer

_ABSENT = "0" * 40


async def land_on_branch(
    store: SnapshotStore, given: LandInput, source: DirectorySource, name: str
) -> Landed | LandConflict:
    """Commit the change on top of the commit that the source repository is at now.

    Raises:
        ApplicationError: SourceNotFound, LandingImpossible.
    """
    directory = directory_of(source)
    repository = await repository_to_land_in(directory)
    user = as_owner(repository)
    if await is_taken(user, name, given.run.key):
        return _taken(name)
    if await resolved(user, f"refs/heads/{name}") is None:
        made = await _commit_beside(store, given, repository, user, directory)
        if isinstance(made, Conflict):
            reason = (
                f"{made.reason}; a branch begins at the last commit: commit first what the work "
                "changes and no commit holds"
            )
            return LandConflict(paths=made.paths, reason=reason)
        try:
            await user.run("update-ref", f"refs/heads/{name}", made, _ABSENT)
        except GitError as error:
            if await resolved(user, f"refs/heads/{name}") == made:
                pass
            elif "cannot lock ref" in error.stderr:
                return LandConflict(paths=(), reason=f"branch {name} can't be made: {error}")
            else:
                raise
    prefix = directory.relative_to(repository.top).as_posix()
    within = "^{tree}" if prefix == "." else f":{prefix}"
    lands = await resolved(user, f"refs/heads/{name}{within}")
    mixed = lands != await store.tree_of(given.head)
    return await landed(store, "branch", name, given.base, given.head, mixed=mixed)


async def _commit_beside(
    store: SnapshotStore, given: LandInput, repository: Repository, user: Git, directory: Path
) -> str | Conflict:
    """Put a commit of the change into the source repository, with no ref to it yet."""
    objects = Path(await user.line("rev-parse", "--git-path", "objects"))
    prefix = directory.relative_to(repository.top).as_posix()
    tip = await resolved(user, "HEAD")
    git = dataclasses.replace(
        store.git(alternates=objects),
        index=store.path / f"landing-{given.run.key}.index",
        work_tree=store.path,  # read-tree wants one, and leaves it alone
    )
    assert git.index is not None
    if tip is None:
        ours = given.base  # no commit yet: the change is all there is
    elif prefix == ".":
        ours = tip
    else:
        ours = await resolved(user, f"HEAD:{prefix}") or await git.line("mktree")
    merged = await store.merge(given.base, ours, given.head, alternates=objects)
    if isinstance(merged, Conflict):
        return merged
    try:
        tree = await _grafted(git, tip, prefix, merged.tree)
    finally:
        git.index.unlink(missing_ok=True)
    parents = ("-p", tip) if tip else ()
    commit = await dated(git).line("commit-tree", tree, *parents, stdin=message(given))
    wanted = f"{commit}\n" + (f"^{tip}\n" if tip else "")
    pack = await git.out("pack-objects", "--revs", "--stdout", "-q", stdin=wanted.encode())
    await user.run("unpack-objects", "-q", stdin=pack)
    return commit


async def _grafted(git: Git, tip: str | None, prefix: str, tree: str) -> str:
    """The whole repository's tree with `tree` in the place of its folder `prefix`."""
    if prefix == ".":
        return tree
    await git.run("read-tree", *([tip] if tip else ["--empty"]))
    await drop_within(git, [os.fsencode(prefix)])
    await git.run("read-tree", f"--prefix={prefix}/", tree)
    return await git.line("write-tree")


async def push_branch(
    store: SnapshotStore, given: LandInput, source: GitSource, name: str
) -> Landed | LandConflict:
    """Push a commit of the change, on top of the commit that the run began from, to a new branch.

    Raises:
        ApplicationError: LandingImpossible; LandingUnreachable, which may be retried.
    """
    _, notes = await store.first(given.run.key)
    assert notes.commit is not None
    planned = await store.ref(given.run.key, "landing")
    if planned is None:
        merged = await store.merge(given.base, notes.commit, given.head)
        if isinstance(merged, Conflict):
            return LandConflict(paths=merged.paths, reason=merged.reason)
        planned = await dated(store.git()).line(
            "commit-tree", merged.tree, "-p", notes.commit, stdin=message(given)
        )
        await store.set_ref(given.run.key, "landing", planned)
    git, ref = remote(store), f"refs/heads/{name}"
    try:
        listed = await git.line("ls-remote", "--", source.url, ref)
        if listed and listed.split()[0] != planned:
            return _taken(name)
        if not listed:
            await git.run(
                "push", "--quiet", "--no-verify", f"--force-with-lease={ref}:",
                "--", source.url, f"{planned}:{ref}",
            )  # fmt: skip
    except GitError as error:
        if "stale info" in error.stderr:
            return _taken(name)
        raise _explained(error, source.url) from error
    mixed = await store.tree_of(planned) != await store.tree_of(given.head)
    return await landed(store, "branch", name, given.base, given.head, mixed=mixed)


def dated(git: Git) -> Git:
    """git whose commits carry the present time: for commits that people read."""
    now = f"{int(time.time())} +0000"
    return dataclasses.replace(
        git, env=(*git.env, ("GIT_AUTHOR_DATE", now), ("GIT_COMMITTER_DATE", now))
    )


def message(given: LandInput) -> bytes:
    parts = [given.title, given.verification, trailer(given.run.key)]
    return "\n\n".join(part for part in parts if part).encode() + b"\n"


def _taken(name: str) -> LandConflict:
    return LandConflict(
        paths=(), reason=f"branch {name} exists with other content; name another branch"
    )


def _explained(error: GitError, url: str) -> ApplicationError:
    said = error.stderr.strip()
    refused = any(sign in said for sign in (*NO_ACCESS, "rejected", "denied", "protected"))
    if refused:
        return failure("LandingImpossible", f"landing: {url} refuses the branch: {said}")
    return failure("LandingUnreachable", f"landing: {url}: {said}", retry=True)
