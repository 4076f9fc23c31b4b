"""What probes found, kept between processes: a probe takes seconds."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .backend import Backend
from .isolation import PROPERTIES, Isolation

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProbeStore:
    """One backend's file in the user's cache; none where there is no such place."""

    path: Path | None
    key: str

    @staticmethod
    def of(backend: Backend) -> ProbeStore:
        return ProbeStore(_file(backend.name), _key(backend))

    def load(self) -> Isolation | None:
        """None when nothing is kept, or it was found under other circumstances."""
        try:
            kept = json.loads(self.path.read_text()) if self.path else {}
        except (OSError, ValueError):
            return None
        if kept.get("key") != self.key or set(kept["levels"]) != set(PROPERTIES):
            return None
        return Isolation(kept["backend"], kept["levels"], tuple(kept["notes"]))

    def save(self, isolation: Isolation) -> None:
        if self.path is None:
            return
        kept = {"key": self.key, "backend": isolation.backend, "levels": dict(isolation.levels)}
        text = json.dumps(kept | {"notes": isolation.notes})
        with contextlib.suppress(OSError):  # A read-only home costs a probe per process, no more.
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_suffix(f".{os.getpid()}")
            fresh.write_text(text)
            fresh.replace(self.path)


def _file(name: str) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    home = os.environ.get("HOME")
    if base is None and home is None:
        return None
    folder = Path(base) if base else Path(home or "/", ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    return folder / "io-harness" / f"isolation-{name}-{uid}.json"


def _key(backend: Backend) -> str:
    """A digest of everything that the levels depend on."""
    boot = _BOOT_ID.read_text() if _BOOT_ID.exists() else ""
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py"))]
    parts = [backend.identity(), boot, platform.release(), os.environ.get("PATH", "")]
    return hashlib.sha256(b"\0".join([*(part.encode() for part in parts), *code])).hexdigest()
