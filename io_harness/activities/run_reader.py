"""Reads a run's contract and transcript by query to the activity's own workflow."""

from collections import OrderedDict
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError
from temporalio import activity
from temporalio.client import WorkflowHandle
from temporalio.exceptions import ApplicationError

from io_harness import __version__
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.describe import describe_errors
from io_harness.workflows.mcp import McpTools
from io_harness.workflows.messages import AssistantMessage, Message, ToolMessage
from io_harness.workflows.payloads import RunScope, TranscriptMark
from io_harness.workflows.transcript import TranscriptPage, extended_digest

_CACHED_CONTRACTS = 1_024
_CACHED_MCP_LISTS = 64
_CACHED_EXPECTATIONS = 1_024
_CACHED_TRANSCRIPT_BYTES = 256 * 1024 * 1024
"""Ceiling of all cached transcripts together, as JSON."""


@dataclass(frozen=True)
class _Known:
    """The first messages of a run, and the workflow's digest of each prefix."""

    messages: tuple[Message, ...] = ()
    digests: tuple[str, ...] = ()
    bytes: int = 0

    def holds(self, mark: TranscriptMark) -> bool:
        return len(self.digests) >= mark.upto and self.digests[mark.upto - 1] == mark.digest

    def followed_by(self, more: tuple[Message, ...]) -> "_Known":
        """With more messages, and the digests that this release gives them."""
        digests, size = list(self.digests), self.bytes
        for message in more:
            digests.append(extended_digest(digests[-1] if digests else "", message))
            size += len(message.model_dump_json())
        return _Known((*self.messages, *more), tuple(digests), size)


class RunReader:
    """One per worker. Caches what it read: a turn fetches only the messages that are new to it."""

    def __init__(self) -> None:
        self._contracts: OrderedDict[str, TaskContract] = OrderedDict()
        self._transcripts: OrderedDict[str, _Known] = OrderedDict()
        self._expected: OrderedDict[str, tuple[Message, ...]] = OrderedDict()
        self._mcp: OrderedDict[str, McpTools] = OrderedDict()

    async def contract(self, scope: RunScope) -> TaskContract:
        """The run's contract.

        Raises:
            ApplicationError: `ContractMismatch`, if this release can't read it.
        """
        cached = self._contracts.get(scope.contract_digest)
        if cached is None:
            given: JsonValue = await _own_workflow().query("contract")
            try:
                cached = TaskContract.model_validate(given)
            except ValidationError as error:
                raise ApplicationError(
                    f"this worker, io-harness {__version__}, can't read the contract that the run's "
                    f"worker took: {describe_errors(error)}; have all workers run one release",
                    type="ContractMismatch",
                ) from error
            self._contracts[scope.contract_digest] = cached
        self._contracts.move_to_end(scope.contract_digest)
        while len(self._contracts) > _CACHED_CONTRACTS:
            self._contracts.popitem(last=False)
        return cached

    async def mcp_tools(self, scope: RunScope) -> McpTools:
        """The run's recorded list of MCP tools.

        Raises:
            ApplicationError: `McpListMismatch`, if the workflow's list isn't the one meant.
        """
        cached = self._mcp.get(scope.mcp_digest)
        if cached is None:
            cached = await _own_workflow().query("mcp_tools", result_type=McpTools)
            if cached.digest != scope.mcp_digest:
                raise ApplicationError(
                    "the workflow's list of MCP tools is not the one this call was made for",
                    type="McpListMismatch",
                )
            self._mcp[scope.mcp_digest] = cached
        self._mcp.move_to_end(scope.mcp_digest)
        while len(self._mcp) > _CACHED_MCP_LISTS:
            self._mcp.popitem(last=False)
        return cached

    async def transcript(self, mark: TranscriptMark) -> tuple[Message, ...]:
        """The first `mark.upto` messages of the run.

        Raises:
            ApplicationError: `TranscriptMismatch`, if they don't hash to `mark.digest`.
        """
        run = activity.info().workflow_run_id or ""
        known = self._transcripts.get(run, _Known())
        if not known.holds(mark):
            known = self._as_expected(run, known, mark)
        if not known.holds(mark):
            known = await _read_on(known, mark)
        if not known.holds(mark):  # a fold or a reset rewrote what was cached
            known = await _read_on(_Known(), mark)
        if not known.holds(mark):
            raise ApplicationError(
                f"the first {mark.upto} messages of the transcript don't have the digest "
                f"{mark.digest[:12]}",
                type="TranscriptMismatch",
            )
        self._keep(run, known)
        return known.messages[: mark.upto]

    def expect(self, message: AssistantMessage | ToolMessage) -> None:
        """Tell that the activity gives its run this message. Where the transcript goes on with just
        what was told, which its digest shows, it is known without a query."""
        run = activity.info().workflow_run_id or ""
        before = () if isinstance(message, AssistantMessage) else self._expected.get(run, ())
        self._expected[run] = (*before, message)
        self._expected.move_to_end(run)
        while len(self._expected) > _CACHED_EXPECTATIONS:
            self._expected.popitem(last=False)

    def _as_expected(self, run: str, known: _Known, mark: TranscriptMark) -> _Known:
        """What is known, with the expected messages up to the mark if they are the transcript's."""
        expected = _in_order(known.messages, self._expected.pop(run, ()))
        missing = max(0, mark.upto - len(known.messages))
        longer = known.followed_by(expected[:missing])
        if not longer.holds(mark):
            return known
        self._expected[run] = expected[missing:]
        return longer

    def _keep(self, run: str, known: _Known) -> None:
        self._transcripts[run] = known
        self._transcripts.move_to_end(run)
        total = sum(each.bytes for each in self._transcripts.values())
        while total > _CACHED_TRANSCRIPT_BYTES and len(self._transcripts) > 1:
            total -= self._transcripts.popitem(last=False)[1].bytes


def _in_order(known: tuple[Message, ...], expected: tuple[Message, ...]) -> tuple[Message, ...]:
    """Results of calls that ran side by side, in the order of the calls, as the workflow has them."""
    replies = (m for m in (*expected, *reversed(known)) if isinstance(m, AssistantMessage))
    reply = next(replies, None)
    order = {call.id: place for place, call in enumerate(reply.calls)} if reply else {}

    def place(message: Message) -> int:
        return order.get(message.call_id, len(order)) if isinstance(message, ToolMessage) else -1

    return tuple(sorted(expected, key=place))


async def _read_on(known: _Known, mark: TranscriptMark) -> _Known:
    """What is known and the messages after it, up to the mark or to where the transcript ends; no
    more than what is known if the transcript has other messages before."""
    messages, digests, size = list(known.messages), list(known.digests), known.bytes
    handle = _own_workflow()
    while len(messages) < mark.upto:
        page: TranscriptPage = await handle.query(
            "transcript", len(messages), result_type=TranscriptPage
        )
        if not page.messages or page.before != (digests[-1] if digests else ""):
            break
        messages += page.messages
        digests += page.digests
        size += sum(len(message.model_dump_json()) for message in page.messages)
    return _Known(tuple(messages), tuple(digests), size)


def _own_workflow() -> WorkflowHandle[object, object]:
    info = activity.info()
    assert info.workflow_id is not None
    return activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)
