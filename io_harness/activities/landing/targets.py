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


async def check_landing(contract: TaskContract, run_key: str) -> None:
    """Raises:
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
            await _check_branch(source, branch_name(landing, run_key))
        case Patch():
            await asyncio.to_thread(_check_patch, Path(landing.path))
        case _:
            assert_never(landing)


async def _check_branch(source: DirectorySource | GitSource, name: str) -> None:
    checked = await Git(Path("/nonexistent")).run(
        "check-ref-format", "--branch", name, codes=(0, 128)
    )
    if checked.code:
        raise failure(
            "LandingImpossible", f"landing.name: {name!r} is no name that a branch can have"
        )
    if isinstance(source, DirectorySource):
        await repository_to_land_in(directory_of(source))


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
