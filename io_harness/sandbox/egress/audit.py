"""One row per decision: who asked for which host, what was decided and why.

A row holds no path, query, header or body: those may carry secrets.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from io_harness.sandbox.egress.decision import Allowed, Decision, Denied, Reason


class Via(StrEnum):
    """How the request came."""

    CONNECT = "connect"
    PROXY_HTTP = "proxy_http"
    CAPTURED_HTTP = "captured_http"
    CAPTURED_TLS = "captured_tls"
    DNS = "dns"
    CLIENT = "client"  # a connection of the harness itself


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A decision as kept.

    Attributes:
        at: seconds since the epoch.
        session: the session's name.
        reason: None when allowed.
        rule, layer: what decided, where it came to that; no rule: what holds without one.
        asked: whether it was allowed by an answer.
        addresses: pinned, where allowed.
    """

    at: float
    session: str
    via: Via
    host: str
    port: int
    allowed: bool
    reason: Reason | None
    rule: str | None
    layer: str | None
    asked: bool
    addresses: tuple[str, ...]
    detail: str


class AuditLog:
    """The last rows of a session, and the number of all."""

    def __init__(
        self, session: str, keep: int, on_row: Callable[[AuditRow], None] | None = None
    ) -> None:
        self._session = session
        self._on_row = on_row
        self._rows: deque[AuditRow] = deque(maxlen=keep)
        self.allowed = 0
        self.denied = 0
        self.denied_by_reason: Counter[Reason] = Counter()

    @property
    def rows(self) -> tuple[AuditRow, ...]:
        """The rows that are kept, oldest first."""
        return tuple(self._rows)

    def record(self, via: Via, decision: Decision, detail: str = "") -> AuditRow:
        """Keep the decision's row, count it, and hand it to `on_row`.

        `detail` says what became of an allowed connection that could not be made.
        """
        row = self._row(via, decision, detail)
        self._rows.append(row)
        if row.reason is None:
            self.allowed += 1
        else:
            self.denied += 1
            self.denied_by_reason[row.reason] += 1
        if self._on_row is not None:
            self._on_row(row)
        return row

    def _row(self, via: Via, decision: Decision, detail: str) -> AuditRow:
        verdict = decision.verdict
        text, layer = (verdict.rule, verdict.layer) if verdict else (None, None)
        at = time.time()
        match decision:
            case Allowed(target, _, asked, addresses):
                shown = tuple(map(str, addresses))
                return AuditRow(
                    at, self._session, via, target.host, target.port, True, None, text, layer,
                    asked, shown, detail,
                )  # fmt: skip
            case Denied(host, port, reason, _, why):
                return AuditRow(
                    at, self._session, via, host, port, False, reason, text, layer,
                    False, (), why,
                )  # fmt: skip
            case _:
                assert_never(decision)
