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
    shared_store: str | None = None
    """URL or path of a git repository through which several hosts share snapshots; None: this host's
    store is for itself."""

    @staticmethod
    def from_env() -> "Settings":
        """Read `IO_HARNESS_DATA` (default: `$XDG_DATA_HOME/io-harness`), `IO_HARNESS_SNAPSHOTS` (a git
        repository) and `IO_HARNESS_CREDENTIALS` (comma-separated names, added to the known
        providers')."""
        data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        data = os.environ.get("IO_HARNESS_DATA") or str(Path(data_home) / "io-harness")
        named = os.environ.get("IO_HARNESS_CREDENTIALS", "")
        extra = frozenset(name.strip() for name in named.split(",") if name.strip())
        return Settings(
            data_dir=Path(data).absolute(),
            credentials=DEFAULT_CREDENTIALS | extra,
            shared_store=os.environ.get("IO_HARNESS_SNAPSHOTS") or None,
        )


class CredentialUnreadable(Exception):
    """The file of a credential can't be read. The message names the variable and the file."""


def credential(variable: str) -> str:
    """The value of a variable of the worker's environment, or what the file holds that
    `<variable>_FILE` names, as container engines mount secrets. Empty if neither is set.

    Raises:
        CredentialUnreadable
    """
    value, file = os.environ.get(variable, "").strip(), os.environ.get(f"{variable}_FILE")
    if value or not file:
        return value
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialUnreadable(f"{variable}_FILE: {file} can't be read: {error}") from error
