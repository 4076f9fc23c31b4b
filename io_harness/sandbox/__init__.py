"""Isolation of one command, and the egress proxy. Knows nothing of Temporal or agents."""

from .errors import SandboxError
from .isolation import DEFAULT_REQUIRE, PROPERTIES, Isolation, Level, Property
from .plan import (
    PROTECTED_NAMES,
    Door,
    Limits,
    Mode,
    Net,
    NetHost,
    NetNone,
    NetProxy,
    Plan,
    base_env,
    protected_in,
)
from .registry import backend_names, objection, probe, run
from .result import Captured, Cause, Completed

__all__ = [
    "DEFAULT_REQUIRE",
    "PROPERTIES",
    "PROTECTED_NAMES",
    "Captured",
    "Cause",
    "Completed",
    "Door",
    "Isolation",
    "Level",
    "Limits",
    "Mode",
    "Net",
    "NetHost",
    "NetNone",
    "NetProxy",
    "Plan",
    "Property",
    "SandboxError",
    "backend_names",
    "base_env",
    "objection",
    "probe",
    "protected_in",
    "run",
]
