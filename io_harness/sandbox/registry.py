"""The backends, best first, and the choice among them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

from .backend import Backend
from .errors import SandboxError
from .floor import Floor
from .isolation import Isolation, Property
from .plan import NetProxy, Plan
from .probe import probe_backend
from .result import Completed
from .supervisor import supervise


@functools.cache
def backends() -> tuple[Backend, ...]:
    """Every backend, the one that holds best first."""
    found: list[Backend] = []
    if sys.platform == "linux":
        from .linux.bubblewrap import Bubblewrap
        from .linux.landlock import Landlock
        from .linux.namespaces import Namespaces

        found += (Bubblewrap(), Namespaces(), Landlock())
    elif sys.platform == "darwin":
        from .macos.sandbox_exec import SandboxExec

        found.append(SandboxExec())
    elif sys.platform == "win32":
        from .windows.job_object import JobObject

        found.append(JobObject())
    return (*found, Floor())


def backend_names() -> tuple[str, ...]:
    return tuple(backend.name for backend in backends())


def objection(name: str) -> str | None:
    """Why the named backend can't run on this host; None when it can."""
    return _candidates(name)[0].objection()


def _candidates(name: str | None) -> tuple[Backend, ...]:
    if name is None:
        return backends()
    found = tuple(backend for backend in backends() if backend.name == name)
    if not found:
        raise SandboxError(f"no backend is named {name!r}; there are: {', '.join(backend_names())}")
    return found


async def run(
    plan: Plan,
    *,
    backend: str | None = None,
    spill: Path | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Runs one command in the best backend that can carry out its plan, or in the named one.

    Returns when the main process has ended and nothing of its tree is left. `spill` gets the raw
    output, both streams as they come, up to `limits.file_bytes`; `on_output` each piece of it.
    Cancelling the awaiting task ends the tree within 2 s.

    Raises `SandboxError` when no backend can carry out the plan with what it requires, before
    anything is started, and when the wrapper fails.
    """
    chosen, isolation = await choose(plan, backend)
    return await supervise(plan, chosen, isolation, spill, on_output)


async def probe(backend: str | None = None) -> Isolation:
    """What a backend enforces on this host for this user: the named one, or the best that works.

    Found by attacking it, once per process. Raises `SandboxError` when it can't run here.
    """
    reasons: list[str] = []
    for candidate in _candidates(backend):
        objection = candidate.objection()
        if objection is None:
            try:
                isolation = await probe_backend(candidate)
            except SandboxError as error:
                objection = str(error)
            else:
                return Isolation(isolation.backend, isolation.levels, (*reasons, *isolation.notes))
        reasons.append(f"{candidate.name}: {objection}")
    raise SandboxError("no sandbox works here. " + "; ".join(reasons))


async def choose(plan: Plan, name: str | None) -> tuple[Backend, Isolation]:
    required = set(plan.require)
    if isinstance(plan.net, NetProxy) and "net_deny" in required:
        required.add("egress_allowlist")
    reasons: list[str] = []
    for candidate in _candidates(name):
        objection = candidate.objection(plan)
        if objection is None:
            try:
                isolation = await probe_backend(candidate)
            except SandboxError as error:
                objection = str(error)
            else:
                missing = isolation.missing(required)
                if not missing:
                    notes = (*reasons, *isolation.notes)
                    return candidate, Isolation(isolation.backend, isolation.levels, notes)
                objection = "does not enforce " + ", ".join(missing)
        reasons.append(f"{candidate.name}: {objection}")
    raise SandboxError(_refusal(reasons, required))


def _refusal(reasons: list[str], required: set[Property]) -> str:
    lines = ["no sandbox here can carry out the plan:", *(f"  {reason}" for reason in reasons)]
    if required:
        lines.append("Install bubblewrap (`apt install bubblewrap`), or require less.")
    return "\n".join(lines)
