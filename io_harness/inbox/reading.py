"""What the pages show, read from Temporal."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from io_harness import runs
from io_harness.runs import ListedRun
from io_harness.workflows.approvals import LoggedDecision, PendingApproval
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.status import ResultSoFar, RunStatus

MOST_RUNS = 100
"""How many runs one page asks; the rest is counted."""
_AT_ONCE = 8
_PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True)
class Waiting:
    """One request of one run."""

    run: ListedRun
    status: RunStatus
    pending: PendingApproval


@dataclass(frozen=True)
class Silent:
    """A run that waits but did not answer: no worker took the query."""

    run: ListedRun
    why: str


@dataclass(frozen=True)
class Inbox:
    """What waits in the namespace, longest first."""

    waiting: tuple[Waiting, ...] = ()
    silent: tuple[Silent, ...] = ()
    unasked: int = 0
    """Runs beyond those that one page asks."""


@dataclass(frozen=True)
class Open:
    """The request waits."""

    pending: PendingApproval
    call: ToolCall | None
    """What an edit would change; None for what is not the model's call."""


@dataclass(frozen=True)
class Closed:
    """The request waits no more."""

    decided: LoggedDecision | None
    """The decision that took effect; None if it expired, or the run ended without."""


@dataclass(frozen=True)
class Seen:
    """One request, as its page shows it."""

    status: RunStatus
    state: Open | Closed


async def read_inbox(client: Client) -> Inbox:
    """Ask every run that waits, a few at a time."""
    found = [run async for run in runs.waiting_runs(client)]
    turn = asyncio.Semaphore(_AT_ONCE)

    async def ask(run: ListedRun) -> RunStatus | Silent:
        async with turn:
            try:
                return await status(client, run.id)
            except (RPCError, runs.NoSuchRun) as error:
                return Silent(run, str(error))

    asked = found[-MOST_RUNS:]  # the oldest; they are listed newest first
    answers = await asyncio.gather(*map(ask, asked))
    waiting = [
        Waiting(run, answer, pending)
        for run, answer in zip(asked, answers, strict=True)
        if isinstance(answer, RunStatus)
        for pending in answer.pending
    ]
    return Inbox(
        waiting=tuple(sorted(waiting, key=lambda each: each.pending.opened_at)),
        silent=tuple(answer for answer in answers if isinstance(answer, Silent)),
        unasked=len(found) - len(asked),
    )


async def status(client: Client, run: str) -> RunStatus:
    """
    Raises:
        runs.NoSuchRun, temporalio.service.RPCError
    """
    with runs.named(run):
        found: RunStatus = await runs.handle(client, run).query(
            "status", result_type=RunStatus, rpc_timeout=_PATIENCE
        )
    return found


async def read_request(client: Client, run: str, request: str) -> Seen:
    """
    Raises:
        runs.NoSuchRun, temporalio.service.RPCError
    """
    found = await status(client, run)
    pending = next((each for each in found.pending if each.id == request), None)
    if pending is not None:
        editable = pending.request.act not in ("land", "question", "retry")
        call = await runs.call_of(client, run, pending) if editable else None
        return Seen(found, Open(pending, call))
    with runs.named(run):
        said = await runs.handle(client, run).query("result_so_far", rpc_timeout=_PATIENCE)
    log = ResultSoFar.model_validate(said).decisions if said else ()
    applied = (d for d in log if d.decision.request == request and d.effect == "applied")
    return Seen(found, Closed(next(applied, None)))
