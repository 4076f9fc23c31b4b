"""How the loop is left: one exception, from wherever the run finds that it is over."""

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError,
    is_cancelled_exception,
)

from .result import Outcome


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


def reraise_cancel(error: ActivityError) -> None:
    """An activity that was cancelled with its run is no failure of the activity."""
    if is_cancelled_exception(error):
        raise error
