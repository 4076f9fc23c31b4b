"""Renders a plan as a profile in SBPL, the language of macOS' `sandbox-exec`.

Of all rules that match an operation the last one decides. Paths go in as parameters, never as
text, so that no path can be read as a rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..plan import NetHost, Plan

READABLE = (
    "/usr", "/bin", "/sbin", "/System", "/Library", "/Applications/Xcode.app", "/opt",
    "/private/etc/ssl", "/private/etc/localtime", "/private/var/db/timezone",
    "/private/var/select", "/private/var/db/dyld", "/dev/null", "/dev/zero", "/dev/random",
    "/dev/urandom", "/dev/fd", "/dev/tty",
)  # fmt: skip
"""What ordinary programs read. Accounts, homes and other volumes stay out."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/fd")
"""What ordinary programs write to besides files."""

_BASE = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read-data (literal "/"))
"""


@dataclass
class _Parameters:
    """Paths by the names that the profile knows them by."""

    values: dict[str, str] = field(default_factory=dict)

    def name(self, kind: str, path: Path) -> str:
        key = f"{kind}_{sum(name.startswith(f'{kind}_') for name in self.values)}"
        self.values[key] = os.path.realpath(path)
        return key


def render(plan: Plan, private_tmp: Path, door_port: int | None) -> tuple[str, Mapping[str, str]]:
    """The profile and its parameters."""
    parameters = _Parameters()
    lines = [_BASE]
    lines += _allow("file-read*", "SYSTEM", map(Path, READABLE), parameters)
    lines += _allow("file-write-data file-ioctl", "DEVICE", map(Path, DEVICES), parameters)
    readable = [*plan.read_only_roots, *plan.writable_roots, plan.workspace, private_tmp]
    writable = [*plan.writable_roots, private_tmp]
    if plan.mode != "read_only":
        writable.append(plan.workspace)
    if plan.mode == "full":
        readable, writable = [Path("/")], [Path("/")]
    lines += _allow("file-read*", "READ", readable, parameters)
    lines += _allow("file-write*", "WRITE", writable, parameters)
    for path in plan.protected:
        name = parameters.name("PROTECTED", path)
        lines.append(f'(deny file-write* (subpath (param "{name}")))')
        lines += _deny_moving_ancestors(path, writable, parameters)
    for path in plan.hidden:
        name = parameters.name("HIDDEN", path)
        lines.append(f'(deny file-read* file-write* (subpath (param "{name}")))')
    lines += _network(plan, door_port)
    return "\n".join(lines) + "\n", parameters.values


def _allow(
    operation: str, kind: str, paths: Iterator[Path] | list[Path], parameters: _Parameters
) -> Iterator[str]:
    for path in paths:
        yield f'(allow {operation} (subpath (param "{parameters.name(kind, path)}")))'


def _deny_moving_ancestors(
    path: Path, writable: list[Path], parameters: _Parameters
) -> Iterator[str]:
    """A protected file is as well replaced by renaming a directory above it."""
    for ancestor in path.parents:
        if any(ancestor != root and ancestor.is_relative_to(root) for root in writable):
            name = parameters.name("ANCESTOR", ancestor)
            yield f'(deny file-write-unlink (literal (param "{name}")))'


def _network(plan: Plan, door_port: int | None) -> Iterator[str]:
    if isinstance(plan.net, NetHost):
        yield "(allow network*)"
        yield "(allow system-socket)"
        yield '(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))'
    elif door_port is not None:
        yield f'(allow network-outbound (remote ip "localhost:{door_port}"))'
