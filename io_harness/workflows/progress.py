"""Whether the model still gets anywhere."""

import hashlib
from typing import Literal

from .messages import Observation, ToolCall
from .model import Record

SAME_CALL_LIMIT = 3
"""The same call with the same result so often, within the window, is no progress."""
WINDOW = 12
IDLE_TURNS = 40
"""Turns in a row without a change of the workspace or a result not seen before."""

Pace = Literal["moving", "nudge", "stalled"]


class Progress(Record):
    """The last results, as digests. One nudge, then stalled."""

    recent: tuple[str, ...] = ()
    idle_turns: int = 0
    nudged: bool = False

    def after_turn(
        self, results: tuple[tuple[ToolCall, Observation], ...], *, changed: bool
    ) -> tuple["Progress", Pace]:
        digests = tuple(_digest(call, observation) for call, observation in results)
        if changed:  # what was seen before the change may well be seen again after it
            return Progress(recent=digests[-WINDOW:]), "moving"
        recent = (*self.recent, *digests)[-WINDOW:]
        idle = 0 if any(d not in self.recent for d in digests) else self.idle_turns + 1
        stuck = any(recent.count(d) >= SAME_CALL_LIMIT for d in digests) or idle >= IDLE_TURNS
        if not stuck:
            return Progress(recent=recent, idle_turns=idle, nudged=self.nudged), "moving"
        if self.nudged:
            return Progress(recent=recent, idle_turns=idle, nudged=True), "stalled"
        # The window is emptied, so that the model has the same room after the nudge as before it.
        return Progress(recent=(), idle_turns=0, nudged=True), "nudge"


def _digest(call: ToolCall, observation: Observation) -> str:
    body = f"{call.name}\n{sorted(call.arguments.items())!r}\n{observation.text}"
    return hashlib.sha256(body.encode()).hexdigest()[:16]
