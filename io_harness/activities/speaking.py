"""What models say at this moment, for who follows a run in the process of its worker.

Others see it in heartbeats, which the SDK sends on at its own pace.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .providers.base import CallProgress

_calls: dict[str, CallProgress] = {}
"""The model call of each run on this worker, by workflow id."""


@contextmanager
def speaking(workflow_id: str, progress: CallProgress) -> Iterator[None]:
    """Let others of this process hear the call while the block runs."""
    _calls[workflow_id] = progress
    try:
        yield
    finally:
        if _calls.get(workflow_id) is progress:
            del _calls[workflow_id]


def said(workflow_id: str) -> str:
    """The end of what the run's model has said so far; empty if no call of it runs in this process."""
    progress = _calls.get(workflow_id)
    return progress.tail if progress else ""
