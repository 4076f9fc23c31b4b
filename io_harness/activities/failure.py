"""Errors that end an activity: one code, one message that says what to do."""

import errno

from temporalio.exceptions import ApplicationError

from .git import GitError, GitUnusable
from .store import UnknownSnapshot

_FULL = (errno.ENOSPC, errno.EDQUOT)


def failure(code: str, message: str, *, retry: bool = False) -> ApplicationError:
    """Args:
    retry: Whether trying again can help without anybody doing anything.
    """
    return ApplicationError(message, type=code, non_retryable=not retry)


def as_failure(error: OSError | GitError | GitUnusable | UnknownSnapshot) -> ApplicationError:
    """What went wrong with files or git, told apart by whether a retry can help."""
    if isinstance(error, GitUnusable):
        return failure("GitUnusable", str(error))
    if isinstance(error, UnknownSnapshot):
        return failure("UnknownSnapshot", f"{error}; was it collected, or made on another host?")
    full = error.disk_full if isinstance(error, GitError) else error.errno in _FULL
    if full:
        return failure("DiskFull", f"no space left on the worker: {error}; free some and run again")
    if isinstance(error, PermissionError):
        return failure("AccessDenied", f"the worker may not do this: {error}")
    return failure("WorkspaceFailure", str(error), retry=True)
