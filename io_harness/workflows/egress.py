"""Whom a run reached over the network: counts that each activity's result brings in."""

from collections.abc import Iterable
from typing import Literal

from .model import Record

HOSTS_KEPT = 200
"""Of one run. What comes after is counted together under the host `OTHERS`."""
OTHERS = "(others)"


class EgressCount(Record):
    """Connections to one host and port, wanted by a run's commands or by the harness for the run."""

    by: Literal["commands", "harness"]
    """harness: to a model's provider, or to an MCP server at a URL."""
    host: str
    port: int | None
    """None where none was named: a name that was looked up, or a request that could not be read."""
    allowed: int = 0
    denied: int = 0
    why: str = ""
    """Why the last one that was denied was."""

    def plus(self, other: "EgressCount") -> "EgressCount":
        return self.model_copy(
            update={
                "allowed": self.allowed + other.allowed,
                "denied": self.denied + other.denied,
                "why": other.why or self.why,
            }
        )


def added(counts: Iterable[EgressCount], more: Iterable[EgressCount]) -> tuple[EgressCount, ...]:
    """The sum, one row per host and port, in the order in which they were first wanted."""
    rows: dict[tuple[str, str, int | None], EgressCount] = {}
    for count in (*counts, *more):
        key = (count.by, count.host, count.port)
        if key not in rows and len(rows) >= HOSTS_KEPT:
            count = count.model_copy(update={"host": OTHERS, "port": None})
            key = (count.by, OTHERS, None)
        rows[key] = rows[key].plus(count) if key in rows else count
    return tuple(rows.values())
