"""Exit codes, and how a run's end becomes one."""

from enum import IntEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from io_harness.trace import EndedStep
    from io_harness.workflows.result import RunResult


class Exit(IntEnum):
    """What the command's exit code says. A script may rely on these."""

    OK = 0
    """The work is verified and landed, or finished where the contract has no criterion."""
    FAILED = 1
    """Something else went wrong; the message says what."""
    USAGE = 2
    """The command line, the contract, or the name of a run is wrong. Nothing was started."""
    UNVERIFIED = 3
    """The run ended without verified work: a budget was used up, or the agent got nowhere."""
    DENIED = 4
    """A human or the policy refused what the run needed, or nobody decided in time."""
    PENDING = 5
    """The run waits for a human's decision."""
    PROVIDER = 6
    """No model of the contract gave a usable reply, or its credential is missing."""
    SANDBOX = 7
    """Commands can't be held as the contract asks, or the sandbox failed."""
    SERVER = 8
    """The Temporal server can't be reached or started."""
    WORKSPACE = 9
    """The workspace can't be prepared, the verified work can't be landed, or the worker's data
    directory can't be written."""
    CANCELLED = 130
    """The run was cancelled: by Ctrl-C, or by somebody else."""


class CommandFailed(Exception):
    """Ends the command with a message and an exit code."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def exit_of(ended: "EndedStep") -> Exit:
    """The exit code for a run that ended."""
    from .error_codes import exit_of_code

    if ended.result is not None:
        return _exit_of_result(ended.result)
    if ended.status in ("cancelled", "terminated"):
        return Exit.CANCELLED
    if ended.status == "timed_out":
        return Exit.UNVERIFIED
    return exit_of_code(ended.code)


def _exit_of_result(result: "RunResult") -> Exit:
    from io_harness.workflows.result import Outcome

    from .error_codes import exit_of_code

    match result.outcome:
        case Outcome.SUCCESS | Outcome.FINISHED:
            return Exit.OK
        case (
            Outcome.STEP_CAP_REACHED
            | Outcome.TIME_BUDGET_EXCEEDED
            | Outcome.TOKEN_BUDGET_EXCEEDED
            | Outcome.COST_BUDGET_EXCEEDED
            | Outcome.BUDGET_CEILING_REACHED
            | Outcome.STALLED
        ):
            return Exit.UNVERIFIED
        case Outcome.DENIED | Outcome.APPROVAL_EXPIRED:
            return Exit.DENIED
        case Outcome.ESCALATED:
            return exit_of_code(result.code)
        case Outcome.CANCELLED:
            return Exit.CANCELLED
        case _:
            assert_never(result.outcome)
