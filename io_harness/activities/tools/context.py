"""What a running tool may use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from io_harness.activities.gate import ApprovalNeeded, CommandLine, Gate, PreviewKind
from io_harness.activities.network import RunNetwork
from io_harness.activities.outputs import RunOutputs
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.payloads import Act, ApprovalRequest

from .beneath import Beneath
from .history import History
from .jobs import JobTable, RunIsOver


class BlobStore(Protocol):
    """Where an image's bytes are kept so that history carries only their name."""

    async def put_blob(self, data: bytes) -> str: ...


@dataclass(frozen=True)
class Want:
    """An effect that a tool is about to have."""

    act: Act
    target: str | CommandLine
    """Resolved path, canonical host:port, or a command line."""
    preview: str
    preview_kind: PreviewKind
    links: int = 1
    """How many names the open file has."""


class AsksNeeded(Exception):
    """A human is to be asked about these first. The call had no effect."""

    def __init__(self, requests: tuple[ApprovalRequest, ...]) -> None:
        super().__init__(", ".join(f"{r.act} {r.target}" for r in requests))
        self.requests = requests


class WouldHaveActed(Exception):
    """The call is only a preview, and nothing stands in its way."""


@dataclass(frozen=True)
class ToolContext:
    """One call's surroundings."""

    run_key: str
    root: Path
    """The working copy."""
    files: Beneath
    """The only way to the copy's files."""
    gate: Gate
    outputs: RunOutputs
    contract: TaskContract
    blobs: BlobStore
    history: History
    """The agent's commits."""
    network: RunNetwork
    """What its commands may reach."""
    jobs: JobTable
    run_is_over: RunIsOver
    """Whether the run has ended, on whichever worker."""
    call: ToolCall
    begin_change: Callable[[], None]
    """Called right before the copy may change, so that a crash in between is noticed."""
    preview_only: bool = False
    progress: Callable[[str], None] = lambda text: None
    """Says in one line how far the call is, for whoever watches it."""

    def check(self, *wants: Want) -> None:
        """Return if the policy and the humans asked so far allow all of these.

        Raises:
            Refused: the policy denies one.
            AsksNeeded: a human must be asked about some; all of those are named.
        """
        requests: list[ApprovalRequest] = []
        for want in wants:
            try:
                self.gate.require(
                    want.act,
                    want.target,
                    tool=self.call.name,
                    arguments=self.call.arguments,
                    preview=want.preview,
                    preview_kind=want.preview_kind,
                    links=want.links,
                )
            except ApprovalNeeded as needed:
                requests.append(needed.request)
        if requests:
            raise AsksNeeded(tuple(requests))

    def check_read(self, path: str, links: int = 1) -> None:
        """`check` of reading a resolved path, or the open file there, which has `links` names."""
        self.check(Want("read", path, path, "text", links=links))

    def require(self, *wants: Want) -> None:
        """`check`, and the call's effect begins. Call it right before the effect.

        Raises:
            Refused, AsksNeeded: as `check`.
            WouldHaveActed: the call is a preview.
        """
        self.check(*wants)
        if self.preview_only:
            raise WouldHaveActed
        self.begin_change()
