"""Errors that end an activity: one code, one message that says what to do."""

import contextlib
import errno
from collections.abc import Iterator

from temporalio.exceptions import ApplicationError

from io_harness.sandbox import SandboxError

from .git import GitError, GitUnusable
from .store import UnknownSnapshot

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def failure(code: str, message: str, *, retry: bool = False) -> ApplicationError:
    """Args:
    retry: Whether trying again can help without anybody doing anything.
    """
    return ApplicationError(message, type=code, non_retryable=not retry)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn what can go wrong with files, git and the sandbox into errors of an activity, told apart
    by whether a retry can help."""
    try:
        yield
    except GitUnusable as error:
        raise failure("GitUnusable", str(error)) from error
    except UnknownSnapshot as error:
        raise failure(
            "UnknownSnapshot", f"{error}; was it collected, or made on another host?"
        ) from error
    except SandboxError as error:
        raise failure("SandboxUnusable", f"{error}; see `io-harness doctor`") from error
    except (OSError, GitError) as error:
        raise _of_files(error) from error


def _of_files(error: OSError | GitError) -> ApplicationError:
    if isinstance(error, GitError):
        full, denied = error.disk_full, error.denied
    else:
        full, denied = error.errno in _FULL, error.errno in _DENIED
    if full:
        return failure("DiskFull", f"no space left on the worker: {error}; free some and run again")
    if denied:
        return failure("AccessDenied", f"the worker may not do this: {error}")
    return failure("WorkspaceFailure", str(error), retry=True)
