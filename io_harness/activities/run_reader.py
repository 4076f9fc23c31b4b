"""Reads a run's contract and transcript by query to the activity's own workflow."""

from collections import OrderedDict
from typing import TypeVar

from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError

from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Message
from io_harness.workflows.payloads import RunScope, TranscriptMark
from io_harness.workflows.transcript import TranscriptPage, contract_digest, extend_digest

T = TypeVar("T")

_CACHED_RUNS = 256


class RunReader:
    """One per worker. Caches what it read: a turn fetches only the messages that are new to it."""

    def __init__(self) -> None:
        self._contracts: OrderedDict[str, TaskContract] = OrderedDict()
        self._transcripts: OrderedDict[str, list[tuple[Message, str]]] = OrderedDict()

    async def contract(self, scope: RunScope) -> TaskContract:
        """The run's contract.

        Raises:
            ApplicationError: `ContractMismatch`, if the workflow's contract isn't the one meant.
        """
        cached = self._contracts.get(scope.contract_digest)
        if cached is not None:
            self._contracts.move_to_end(scope.contract_digest)
            return cached
        contract: TaskContract = await _own_workflow().query("contract", result_type=TaskContract)
        if contract_digest(contract) != scope.contract_digest:
            raise ApplicationError(
                "the workflow's contract is not the one this call was made for",
                type="ContractMismatch",
            )
        _remember(self._contracts, scope.contract_digest, contract)
        return contract

    async def transcript(self, mark: TranscriptMark) -> tuple[Message, ...]:
        """The first `mark.upto` messages of the run.

        Raises:
            ApplicationError: `TranscriptMismatch`, if they don't hash to `mark.digest`.
        """
        run = activity.info().workflow_run_id or ""
        known = self._transcripts.get(run, [])
        if len(known) < mark.upto or known[mark.upto - 1][1] != mark.digest:
            if len(known) >= mark.upto or not await self._fetch(known, mark):
                known = []  # a fold or a reset rewrote what was cached
                if not await self._fetch(known, mark):
                    raise ApplicationError(
                        f"the first {mark.upto} messages of the transcript don't have the digest "
                        f"{mark.digest[:12]}",
                        type="TranscriptMismatch",
                    )
            _remember(self._transcripts, run, known)
        return tuple(message for message, _ in known[: mark.upto])

    async def _fetch(self, known: list[tuple[Message, str]], mark: TranscriptMark) -> bool:
        handle = _own_workflow()
        while len(known) < mark.upto:
            page: TranscriptPage = await handle.query(
                "transcript", len(known), result_type=TranscriptPage
            )
            if not page.messages:
                return False
            for message in page.messages:
                known.append((message, extend_digest(known[-1][1] if known else "", message)))
        return known[mark.upto - 1][1] == mark.digest


def _own_workflow() -> WorkflowHandle[object, object]:
    info = activity.info()
    assert info.workflow_id is not None
    return activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)


def _remember(cache: OrderedDict[str, T], key: str, value: T) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > _CACHED_RUNS:
        cache.popitem(last=False)
