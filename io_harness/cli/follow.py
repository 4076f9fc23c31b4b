"""Follows a live run: shows its steps, asks the person to decide, cancels it on Ctrl-C."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text
from temporalio.api.history.v1 import HistoryEvent

from io_harness import runs, trace
from io_harness.activities.speaking import said
from io_harness.connection import Connection
from io_harness.failures import readable
from io_harness.visible import visible
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.result import Spend

from . import decide, render
from .exits import Exit
from .terminal import can_ask

_IDLE_SECONDS = 0.25
_LOOK_SECONDS = 1.0
"""How often a call that takes long is asked about."""
_SAID_CHARS = 200


class Follower:
    """One run, one person."""

    def __init__(
        self,
        connection: Connection,
        run: str,
        out: Console,
        *,
        approvals: decide.Policy = "prompt",
        verbose: bool = False,
        quiet: bool = False,
    ) -> None:
        """
        Args:
            verbose: Show the output of every tool call.
            quiet: Show no steps; only what asks, and how it ends.
        """
        self.connection = connection
        self.client = connection.client
        self.run = run
        self.out = out
        self.approvals = approvals
        self.verbose = verbose
        self.quiet = quiet
        self.tracer = trace.Tracer(self.client)
        self.spend = Spend()
        self.left: set[str] = set()
        """Requests that the person has seen and leaves waiting."""
        self.asked = 0
        """Ctrl-Cs so far."""
        self.looked = 0.0
        self.trouble = ""
        self.said = ""
        """What the oldest running call told of its progress: the end of what a model writes, or of what
        a command prints."""
        self.running: tuple[trace.Running, ...] = ()
        self.status = Status(_Now(self), console=out)
        self.draws = out.is_terminal and not quiet
        self._tasks: set[asyncio.Task[None]] = set()

    async def until_end(self) -> trace.EndedStep | None:
        """Follow until the run has ended; None if it is left waiting for a decision."""
        events: asyncio.Queue[HistoryEvent | None] = asyncio.Queue()
        pump = asyncio.create_task(self._pump(events))
        try:
            with self._interruptible(), self.status if self.draws else _no_status():
                while True:
                    try:
                        event = await asyncio.wait_for(events.get(), _IDLE_SECONDS)
                    except TimeoutError:
                        if await self._idle() == "leave":
                            return None
                        continue
                    if event is None:
                        await pump  # raises what ended it
                        raise RuntimeError(f"the history of {self.run} ended without an end")
                    step = await self.tracer.feed(event)
                    self.running = self.tracer.running
                    if step is not None and (ended := self._show(step)) is not None:
                        return ended
        finally:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump

    async def _pump(self, events: "asyncio.Queue[HistoryEvent | None]") -> None:
        try:
            async for event in trace.events(self.client, self.run, follow=True):
                events.put_nowait(event)
        finally:
            events.put_nowait(None)

    def _show(self, step: trace.Step) -> trace.EndedStep | None:
        self.trouble = self.said = ""
        if isinstance(step, trace.ModelStep):
            self.spend = _with(self.spend, step)
        shown = render.step(step, verbose=self.verbose)
        if shown is not None and not self.quiet:
            self.out.print(shown)
        return step if isinstance(step, trace.EndedStep) else None

    async def _idle(self) -> str | None:
        """Nothing has happened for a moment: it waits for a human, or a call takes long."""
        if not self.running:
            return await self._decide()
        if time.monotonic() - self.looked > _LOOK_SECONDS:
            self.looked = time.monotonic()
            await self._look()
        return None

    async def _look(self) -> None:
        """Say how far a call is, and why it is tried again, which history tells only when it has
        ended."""
        described = await runs.handle(self.client, self.run).describe()
        converter = self.client.data_converter
        self.said = ""
        for pending in described.raw_description.pending_activities:
            failure = (await readable(converter, pending.last_failure)).message
            if pending.attempt > 1 and failure and failure != self.trouble:
                self.trouble = failure
                self.out.print(
                    f"[yellow]  attempt {pending.attempt} of {pending.activity_type.name}; "
                    f"the one before: {escape(visible(failure))}[/]"
                )
            details = list(pending.heartbeat_details.payloads)
            if details and not self.said:
                self.said = _said((await converter.decode(details[:1]))[0])

    async def _decide(self) -> str | None:
        waiting = await runs.pending(self.client, self.run)
        open_ones = [p for p in waiting if p.id not in self.left]
        if not open_ones:
            return "leave" if waiting else None
        for pending in open_ones:
            decision = await self._decision(pending)
            if decision is None:
                self.left.add(pending.id)
                continue
            try:
                await runs.decide(self.client, self.run, decision)
            except runs.DecisionRejected as error:  # somebody else was faster
                self.out.print(f"[yellow]not taken: {escape(str(error))}[/]")
        return None

    async def _decision(self, pending: PendingApproval) -> Decision | None:
        match self.approvals:
            case "approve" | "deny" as verdict:
                self.out.print(render.approval(pending))
                self.out.print(f"[yellow]{verdict} (--approve-all / --deny-asks)[/]")
                return decide.standing(pending, verdict)
            case "prompt" if can_ask(self.out):
                self.status.stop()
                try:
                    return await decide.ask(self.out, self.client, self.run, pending)
                finally:
                    if self.draws:
                        self.status.start()
            case _:
                self.out.print(render.approval(pending))
                return None

    def now(self) -> Text:
        """What the run does at this moment, and what it has spent."""
        spent = f"{self.spend.usage.total:,} tokens, {self.spend.usd:.4f} USD"
        if not self.running:
            return Text(f"working · {spent}")
        oldest, *others = self.running
        more = f" and {len(others)} more" if others else ""
        seconds = max((datetime.now(UTC) - oldest.since).total_seconds(), 0)
        line = Text(
            f"{visible(oldest.summary or oldest.activity)}{more} · {seconds:.0f} s · {spent}"
        )
        if words := _last_words(said(self.run)) or self.said:
            width = max(self.out.width - 4, 1)
            line.append(f"\n{words[-width:]}", style="dim")
        return line

    # --- Ctrl-C -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        self.asked += 1
        if self.asked == 1:
            self.out.print(f"\ncancelling {escape(self.run)} (Ctrl-C again leaves at once)")
            task = asyncio.get_running_loop().create_task(runs.cancel(self.client, self.run))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        self.status.stop()
        self.out.print(f"left {escape(self.run)}; it is cancelled when a worker takes it up again")
        if self.connection.held:
            self.connection.held.leave()
        os._exit(Exit.CANCELLED)


@dataclass(frozen=True)
class _Now:
    """Drawn anew with each frame of the spinner, in its thread."""

    follower: Follower

    def __rich__(self) -> Text:
        return self.follower.now()


def _said(details: object) -> str:
    """The last words of a heartbeat: a model call tells the end of its text, a tool a line."""
    told = details.get("tail") if isinstance(details, dict) else details
    return _last_words(told) if isinstance(told, str) else ""


def _last_words(told: str) -> str:
    return visible(" ".join(told.split()))[-_SAID_CHARS:]


def _with(spend: Spend, step: trace.ModelStep) -> Spend:
    completion = step.completion
    return spend.model_copy(
        update={
            "usage": spend.usage + completion.usage,
            "usd": spend.usd + (completion.cost_usd or 0),
        }
    )


@contextlib.contextmanager
def _no_status() -> Iterator[None]:
    yield
