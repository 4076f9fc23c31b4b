"""Typed stubs of the activities: the only way in which the workflow calls them.

Nothing is unbounded: each has `schedule_to_close`, a maximum of attempts and a heartbeat time-out.
"""

from datetime import timedelta

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RetryPolicy

from .model import Record
from .payloads import (
    CompleteInput,
    Completion,
    LandInput,
    NeedsApproval,
    PrepareInput,
    Prepared,
    Released,
    ReleaseInput,
    ToolDone,
    UseToolInput,
    VerifyInput,
)
from .result import Landed, LandConflict, NothingToLand, VerificationReport

HEARTBEAT = timedelta(seconds=10)
"""A worker that is silent for longer is taken for dead and its call runs elsewhere."""
_SETUP_SHARE = 1800  # seconds for copying a source, besides its setup command


class _ToolOutcome(Record):
    """Temporal decodes into one type; the union is a field of it."""


def _retry(attempts: int) -> RetryPolicy:
    # The cap on the interval is no cap on waiting: a provider's Retry-After overrides it.
    return RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=2,
        maximum_interval=timedelta(seconds=60),
        maximum_attempts=attempts,
    )
