"""Lets whoever hosts the workflow watch what no activity and no message shows: how a wait ended."""

from contextvars import ContextVar
from typing import Protocol

from .approvals import Decision, PendingApproval


class Observer(Protocol):
    """Must not change the run, nor raise. On replay it is called again."""

    def decided(self, pending: PendingApproval, decision: Decision | None, now: float) -> None:
        """A request waits no more; None: nobody decided in time.

        Args:
            now: Workflow time, seconds since the epoch.
        """
        ...


OBSERVER: ContextVar[Observer | None] = ContextVar("io_harness.observer", default=None)
"""Set around a run by an interceptor; the run's tasks inherit it."""
