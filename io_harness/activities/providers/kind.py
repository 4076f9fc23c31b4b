"""How a provider is described to the registry."""

from collections.abc import Callable
from dataclasses import dataclass

from .base import Provider
from .wire import Endpoint, Wire

Build = Callable[[Wire, Endpoint, str], Provider]
"""From the HTTP client, the endpoint and the registry name to the provider."""
Connect = Callable[[str, str | None], Endpoint]
"""From base URL and key to the endpoint."""


@dataclass(frozen=True)
class Kind:
    """A provider by name: how it is spoken to, and what is usual for it."""

    build: Build
    connect: Connect
    base_url: str | None = None
    """None: the contract must give one."""
    key: str | None = None
    """The variable that usually holds its key; None: it needs none."""
    catalogue: str | None = None
    """Its id in genai-prices; None: prices are not known."""
