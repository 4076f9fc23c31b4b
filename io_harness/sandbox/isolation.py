"""How well a command is held, property by property."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Property = Literal[
    "fs_write", "fs_read", "proc_hidden", "net_deny", "egress_allowlist", "privesc", "syscalls",
    "memory", "pids", "cpu", "wall", "output", "disk", "kill_tree", "env",
]  # fmt: skip
PROPERTIES: tuple[Property, ...] = get_args(Property)

Level = Literal["enforced", "partial", "advisory", "none"]
"""`enforced`: a hostile command can't get past. `partial`: holds an ordinary command, and a hostile
one can get past. `advisory`: holds a command that co-operates. `none`: not held."""

DEFAULT_REQUIRE: frozenset[Property] = frozenset({"fs_write", "net_deny", "kill_tree", "env"})
"""What commands that a model wrote should not run without."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """A backend and the level of each property, as its probe found them."""

    backend: str
    levels: Mapping[Property, Level]
    notes: tuple[str, ...] = ()
    """Why a better backend was not used, or why a level is lower than the backend's best."""

    def missing(self, required: Iterable[Property]) -> tuple[Property, ...]:
        """Those of the required properties that are not enforced."""
        wanted = frozenset(required)
        return tuple(p for p in PROPERTIES if p in wanted and self.levels[p] != "enforced")
