"""What can be known to be wrong with a landing before a run begins."""

import asyncio
import os
from pathlib import Path
from typing import assert_never

from io_harness.activities.failure import failure
from io_harness.activities.git import Git
from io_harness.activities.git_url import check_url
from io_harness.activities.source import Repository, directory_of, repository_of
from io_harness.workflows.contract import (
    Apply,
    Branch,
    DirectorySource,
    GitSource,
    Patch,
    TaskContract,
)


def branch_name(landing: Branch, run_key: str) -> str:
    return landing.name or f"io-harness/{run_key}"


async def check_landing(contract: TaskContract, run_key: str, remote: Git) -> None:
    """
    Args:
        remote: git that may talk to the source's host.

    Raises:
        ApplicationError: SourceNotFound, LandingImpossible.
    """
    source, landing = contract.workspace, contract.landing
    if isinstance(source, GitSource):
        check_url(source.url)
    match landing:
        case Apply():
            assert isinstance(source, DirectorySource)  # the contract says so
            directory = directory_of(source)
            if not os.access(directory, os.W_OK):
                raise failure(
                    "LandingImpossible",
                    f"landing: the worker may not write to {directory}; let it, or use landing.mode "
                    "'patch'",
                )
        case Branch():
            await _check_branch(source, branch_name(landing, run_key), run_key, remote)
        case Patch():
            await asyncio.to_thread(_check_patch, Path(landing.path))
        case _:
            assert_never(landing)


async def _check_branch(
    source: DirectorySource | GitSource, name: str, run_key: str, remote: Git
) -> None:
    checked = await Git(Path("/nonexistent")).run(
        "check-ref-format", "--branch", name, codes=(0, 128)
    )
    if checked.code:
        raise failure(
            "LandingImpossible", f"landing.name: {name!r} is no name that a branch can have"
        )
    if isinstance(source, DirectorySource):
        repository = await repository_to_land_in(directory_of(source))
        taken = await is_taken(as_owner(repository), name, run_key)
    else:
        # A host that can't be reached is told by the fetch that follows.
        listed = await remote.run("ls-remote", "--", source.url, _ref(name), codes=(0, 128))
        taken = listed.code == 0 and bool(listed.stdout.strip())
    if taken:
        raise failure(
            "LandingImpossible",
            f"landing.name: the source has a branch {name!r} already; name another",
        )


async def is_taken(git: Git, name: str, run_key: str) -> bool:
    """Whether the branch exists, and not because an earlier attempt at this run's landing made it."""
    commit = await resolved(git, _ref(name))
    if commit is None:
        return False
    raw = await git.out("cat-file", "commit", commit)
    return raw.decode(errors="replace").rstrip("\n").rpartition("\n")[2] != trailer(run_key)


async def resolved(git: Git, name: str) -> str | None:
    """The object that a name stands for; None where there is no such name."""
    found = await git.run("rev-parse", "--quiet", "--verify", name, codes=(0, 1, 128))
    return None if found.code else found.stdout.decode().strip()


def trailer(run_key: str) -> str:
    """Last line of the message of a commit that this run lands."""
    return f"Io-Harness-Run: {run_key}"


def _ref(branch: str) -> str:
    return f"refs/heads/{branch}"


def as_owner(repository: Repository) -> Git:
    """git on the source repository, run as its owner where we are root: what it makes there must
    stay the owner's to change."""
    info = repository.git_dir.stat()
    foreign = os.name == "posix" and os.geteuid() == 0 and info.st_uid != 0
    return Git(repository.git_dir, owner=(info.st_uid, info.st_gid) if foreign else None)


async def repository_to_land_in(directory: Path) -> Repository:
    """Raises:
    ApplicationError: LandingImpossible.
    """
    repository = await repository_of(directory)
    if repository is None:
        raise failure(
            "LandingImpossible",
            f"landing.mode 'branch' needs a git repository, and {directory} is in none; use 'apply' "
            "or 'patch'",
        )
    return repository


def _check_patch(path: Path) -> None:
    if not path.is_absolute():
        raise failure(
            "LandingImpossible",
            f"landing.path: {str(path)!r} is relative, and the worker has another current directory "
            "than you; give an absolute path",
        )
    if path.is_dir():
        raise failure(
            "LandingImpossible", f"landing.path: {path} is a directory; name a file in it"
        )
    if not os.access(path.parent, os.W_OK):
        raise failure(
            "LandingImpossible",
            f"landing.path: {path.parent} doesn't exist on the worker's host, or the worker may not "
            "write to it",
        )
