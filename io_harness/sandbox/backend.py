"""What a backend is to the supervisor."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .isolation import Level, Property
from .plan import Plan


@dataclass(frozen=True, slots=True)
class Stdio:
    """File descriptors that become 0, 1 and 2 of the command. The supervisor closes them."""

    stdin: int
    stdout: int
    stderr: int


@dataclass(frozen=True, slots=True)
class Exit:
    """How the main process ended: exactly one of the two is set."""

    code: int | None
    signal: int | None


class Running(abc.ABC):
    """A command that was started."""

    @abc.abstractmethod
    async def wait(self) -> Exit:
        """Returns when the main process has ended; `SandboxError` when it never began."""

    @abc.abstractmethod
    def members(self) -> Sequence[int]:
        """Process ids of the tree that the host can see, for accounting. May be empty."""

    @abc.abstractmethod
    def kill(self) -> None:
        """Ends the whole tree, at once and without waiting. May be called again."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Ends what is left of the tree and removes everything that the start left on the host."""


class Backend(Protocol):
    """One way to hold a command."""

    @property
    def name(self) -> str: ...

    @property
    def best(self) -> Mapping[Property, Level]:
        """Levels that its probe is expected to find where everything works."""
        ...

    def identity(self) -> str:
        """Changes when what it enforces here may change: the wrapper's path and time, for one."""
        ...

    def objection(self, plan: Plan | None = None) -> str | None:
        """Why it can't run here, or can't carry out this plan; None when it can."""
        ...

    async def start(self, plan: Plan, stdio: Stdio) -> Running:
        """Starts the command; `SandboxError` when the wrapper can't be set up."""
        ...
