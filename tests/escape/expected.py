"""What each backend is expected to let through. Everything else it must hold.

Better than expected fails as well, so that this table stays true.
"""

from __future__ import annotations

from collections.abc import Mapping

BREACHED: Mapping[str, frozenset[str]] = {
    "linux-bubblewrap": frozenset(),
    "linux-namespaces": frozenset(),
}
BREACHED_AS_ORDINARY_USER: Mapping[str, frozenset[str]] = {}
"""Besides, where the sandbox runs as its caller."""


def expected_breaches(backend: str, *, root: bool) -> frozenset[str]:
    more = frozenset() if root else BREACHED_AS_ORDINARY_USER.get(backend, frozenset())
    return BREACHED[backend] | more
