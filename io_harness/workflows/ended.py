"""How the loop is left: one exception, from wherever the run finds that it is over."""

import asyncio
from typing import TypeVar

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    RetryState,
    TimeoutError,
    is_cancelled_exception,
)

from .model import Record
from .result import Outcome

R = TypeVar("R", bound=Record)


class RunEnded(Exception):
    """The run is over. Caught once, where the result is made."""

    def __init__(self, outcome: Outcome, reason: str, code: str | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.code = code


def failure_code(error: ActivityError) -> str:
    """The error code (ApplicationError type) behind a failed activity, or `Timeout`, or `Unknown`."""
    match error.cause:
        case ApplicationError(type=str(code)):
            return code
        case TimeoutError():
            return "Timeout"
        case _:
            return "Unknown"


def failure_text(error: ActivityError) -> str:
    """What the activity said went wrong, for people."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return cause.message
    return str(cause or error)


def failure_detail(error: ActivityError, of: type[R]) -> R | None:
    """The typed detail that the activity left with its error, or with the last heartbeat before it
    timed out, if there is one."""
    match error.cause:
        case ApplicationError(details=[detail, *_]):
            pass
        case TimeoutError(last_heartbeat_details=[detail, *_]):
            pass
        case _:
            return None
    try:
        return of.model_validate(detail)
    except ValidationError:
        return None


def timed_out(error: ActivityError) -> bool:
    """Whether no further attempt was made because it would have passed the call's total time."""
    return error.retry_state is RetryState.TIMEOUT


def reraise_cancel(error: ActivityError) -> None:
    """An activity that was cancelled with its run is no failure of the activity."""
    if is_cancelled_exception(error):
        raise error


def stop_if_cancelled() -> None:
    """Called before each activity and each wait. The SDK delivers a cancellation once; an activity that
    completes although it was to be cancelled (one that was about to end, or had not started) gives its
    result instead, and the run would go on as if nobody had cancelled it.

    Raises:
        asyncio.CancelledError: somebody asked the run to end.
    """
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError
