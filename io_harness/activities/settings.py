"""What a worker is configured with."""

import os
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_CREDENTIALS = frozenset({"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"})


@dataclass(frozen=True)
class Settings:
    """A worker's own configuration. Nothing of it enters a contract or history."""

    data_dir: Path
    """Holds the snapshot store, working copies and spilled outputs of this host."""
    credentials: frozenset[str] = field(default=DEFAULT_CREDENTIALS)
    """Names of environment variables that contracts may refer to as credentials."""
    record: Path | None = None
    """File to which model calls are recorded, for the provider `replay`."""

    @staticmethod
    def from_env() -> "Settings":
        """Read `IO_HARNESS_DATA` (default: `$XDG_DATA_HOME/io-harness`) and
        `IO_HARNESS_CREDENTIALS` (comma-separated names, added to the known providers')."""
        data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        data = os.environ.get("IO_HARNESS_DATA") or str(Path(data_home) / "io-harness")
        named = os.environ.get("IO_HARNESS_CREDENTIALS", "")
        extra = frozenset(name.strip() for name in named.split(",") if name.strip())
        return Settings(data_dir=Path(data).absolute(), credentials=DEFAULT_CREDENTIALS | extra)
