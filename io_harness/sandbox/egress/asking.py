"""One question for all connections that wait for the same answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from io_harness.sandbox.egress.decision import Ask, Question
from io_harness.sandbox.egress.hosts import Target


@dataclass
class _Pending:
    answer: asyncio.Task[bool]
    waiting: int = 0


class SharedAsk:
    """Asks once per target while a question is open: a package manager opens a dozen connections to
    one host, and nobody wants a dozen questions. The answer holds for those that were waiting.

    A question for which nobody waits any more is cancelled.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._pending: dict[Target, _Pending] = {}

    async def __call__(self, question: Question) -> bool:
        target = question.target
        pending = self._pending.get(target)
        if pending is None:
            pending = _Pending(asyncio.ensure_future(self._put(question)))
            self._pending[target] = pending
        pending.waiting += 1
        try:
            # Shielded, since one connection's end must not take the question from the others.
            return await asyncio.shield(pending.answer)
        finally:
            pending.waiting -= 1
            if pending.waiting == 0:
                pending.answer.cancel()
                if self._pending.get(target) is pending:
                    del self._pending[target]

    async def _put(self, question: Question) -> bool:
        return await self._ask(question)
