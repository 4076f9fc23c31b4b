"""Where log records go: beside the data for a person's commands, to stderr for a service."""

import logging
import logging.handlers
import sys
from pathlib import Path

_BYTES = 2_000_000
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def to_file(data_dir: Path) -> None:
    """Keep records out of the terminal, where steps are shown; what went wrong is shown there too."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    _use(
        logging.handlers.RotatingFileHandler(
            data_dir / "io-harness.log", maxBytes=_BYTES, backupCount=1, delay=True
        )
    )


def to_stderr() -> None:
    """For `up` and `worker`."""
    _use(logging.StreamHandler(sys.stderr))


def _use(handler: logging.Handler) -> None:
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[handler])
