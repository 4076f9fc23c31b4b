"""Finds out what a backend really enforces here."""

from __future__ import annotations

from .backend import Backend
from .isolation import Isolation

_found: dict[str, Isolation] = {}


async def probe_backend(backend: Backend) -> Isolation:
    """The levels of a backend for this user, cached for the life of the process."""
    if backend.name not in _found:
        _found[backend.name] = Isolation(backend.name, dict(backend.best))
    return _found[backend.name]
