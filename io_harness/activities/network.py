"""What runs reach over the network on this worker: the proxy, and what each run has used."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from io_harness import sandbox
from io_harness.sandbox.egress import AuditRow, Judge, Proxy, Question, Session, Target, Usage, Via
from io_harness.sandbox.egress.decision import Ask
from io_harness.sandbox.network import through_proxy
from io_harness.workflows.egress import EgressCount, added
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.payloads import ApprovalRequest
from io_harness.workflows.policy import may_reach_network

from .egress import GateJudge
from .gate import ApprovalNeeded, Gate, Refused

REFUSALS_BYTES = 2_000
"""Ceiling of `CommandNetwork.refusals`."""
_SHOWN = 8
_KEPT_RUNS = 2_048
_GATHER_SECONDS = 0.3
"""A program often asks for several hosts at once; they are shown to a human together."""


@dataclass
class _Run:
    usage: Usage = field(default_factory=Usage)
    counts: tuple[EgressCount, ...] = ()


class RunNetwork:
    """One per worker. The limits on connections and bytes hold for a run as a whole on this worker."""

    def __init__(self, proxy: Proxy | None = None) -> None:
        self.proxy = proxy or Proxy()
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def session(self, run_key: str, judge: Judge, ask: Ask | None = None) -> Session:
        """The decisions about one command, server or connection of a run."""
        run = self._run(run_key)

        def count(row: AuditRow) -> None:
            run.counts = added(run.counts, (_counted(row),))

        return Session(run_key, judge, ask=ask, usage=run.usage, on_row=count)

    def command(self, run_key: str, gate: Gate, asks: "Asks | None" = None) -> "CommandNetwork":
        """The network of a command. Without `asks`, what the policy asks about is denied."""
        return CommandNetwork(self, run_key, gate, asks)

    def take_counts(self, run_key: str) -> tuple[EgressCount, ...]:
        """Connections of the run since this was last called, to be told in an activity's result."""
        run = self._run(run_key)
        counts, run.counts = run.counts, ()
        return counts

    def forget(self, run_key: str) -> None:
        """The run has ended."""
        self._runs.pop(run_key, None)

    def _run(self, run_key: str) -> _Run:
        run = self._runs.setdefault(run_key, _Run())
        self._runs.move_to_end(run_key)
        while len(self._runs) > _KEPT_RUNS:  # of runs that ended on other workers
            self._runs.popitem(last=False)
        return run


@dataclass(frozen=True)
class Asks:
    """How a human is asked about a host that a call's command wants."""

    call: ToolCall
    command: str
    then: str
    """What becomes of the command until the human has answered."""

    def require(self, gate: Gate, target: Target) -> None:
        """Return if it may be reached.

        Raises:
            Refused: it may not.
            ApprovalNeeded: a human is to be asked first.
        """
        gate.require(
            "net",
            str(target),
            tool=self.call.name,
            # Not the call's own arguments: who rewrote a command has not seen the hosts it wants.
            arguments={"call": self.call.arguments},
            preview=f"Let this command connect to {target}:\n{self.command}\n\n{self.then}",
            preview_kind="text",
        )


class CommandNetwork:
    """The network of one command of a run, from its plan to what is told of it afterwards."""

    def __init__(
        self, network: RunNetwork, run_key: str, gate: Gate, asks: Asks | None = None
    ) -> None:
        self.net: sandbox.Net = sandbox.NetNone()
        self._asks = asks
        self._gate = gate
        self._open: dict[Target, ApprovalRequest] = {}
        self._answers: dict[Target, bool] = {}
        self._waiting: dict[Target, asyncio.Future[bool]] = {}
        self._asked = asyncio.Event()
        self._session: Session | None = None
        if may_reach_network(gate.policy):
            ask = self._ask if asks is not None else None
            self._session = network.session(run_key, GateJudge(gate), ask)
            self.net = through_proxy(network.proxy, self._session)

    @property
    def questions(self) -> tuple[ApprovalRequest, ...]:
        """What a human is to be asked about hosts that the command wants. Its connections wait."""
        return tuple(self._open.values())

    async def asked(self) -> None:
        """Return when there are questions, and those that came with the first are there too."""
        await self._asked.wait()
        await asyncio.sleep(_GATHER_SECONDS)

    def answer(self, gate: Gate) -> tuple[ApprovalRequest, ...]:
        """Take on a gate that may know more, let go the connections that it has an answer for, and
        return the questions that are left."""
        self._gate = gate
        if self._session is not None:
            self._session.rules = GateJudge(gate)
        for target in list(self._open):
            known = self._known(target)
            if isinstance(known, bool):
                del self._open[target]
                self._answers[target] = known
                waiting = self._waiting.get(target)
                if waiting is not None and not waiting.done():
                    waiting.set_result(known)
        return self.questions

    def refusals(self) -> str:
        """A line for each host that was refused, and why."""
        seen: dict[str, int] = {}
        for row in self._session.audit.rows if self._session is not None else ():
            if not row.allowed:
                line = f"{_where(row)} {_why(row)}"
                seen[line] = seen.get(line, 0) + 1
        lines = [
            f"[network: {line}{f' ({times} times)' if times > 1 else ''}]\n"
            for line, times in list(seen.items())[:_SHOWN]
        ]
        if len(seen) > _SHOWN:
            lines.append(f"[network: {len(seen) - _SHOWN} more were refused]\n")
        return "".join(lines).encode()[:REFUSALS_BYTES].decode(errors="ignore")

    def _known(self, target: Target) -> bool | ApprovalRequest:
        assert self._asks is not None
        try:
            self._asks.require(self._gate, target)
        except Refused:
            return False
        except ApprovalNeeded as needed:
            return needed.request
        return True

    async def _ask(self, question: Question) -> bool:
        target = question.target
        if target in self._answers:
            return self._answers[target]
        known = self._known(target)
        if isinstance(known, bool):
            return known
        self._open[target] = known
        self._asked.set()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[target] = answer
        try:
            return await answer
        finally:
            del self._waiting[target]


OpenNetwork = Callable[[], CommandNetwork | None]
"""Makes the network of one of the contract's own commands; None is no network at all."""


def nowhere() -> None:
    """An `OpenNetwork` for commands that reach nothing."""


def _counted(row: AuditRow) -> EgressCount:
    return EgressCount(
        by="harness" if row.via is Via.CLIENT else "commands",
        host=_printable(row.host) or "(unreadable)",
        port=row.port or None,
        allowed=int(row.allowed),
        denied=int(not row.allowed),
        why="" if row.allowed else _why(row),
    )


def _where(row: AuditRow) -> str:
    host = _printable(row.host)
    shown = f"{host}:{row.port}" if row.port else host
    return shown or "a request that names no host"


def _why(row: AuditRow) -> str:
    """Why it was refused, by which rule of which layer."""
    reason = str(row.reason or "").replace("_", " ")
    detail = f": {_printable(row.detail)}" if row.detail else ""
    match row.rule, row.layer:
        case None, None:
            by = ""
        case None, layer:
            by = f" (no rule allows it; default of layer {layer!r})"
        case rule, layer:
            by = f" (rule {rule!r} of layer {layer!r})"
    return f"was refused, {reason}{detail}{by}"[:300]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
