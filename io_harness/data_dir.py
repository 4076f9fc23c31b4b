"""The data directory of a host, looked at before anything relies on it."""

import os
import tempfile
from pathlib import Path

_PROBE = b"\0" * 64 * 1024


class DataDirUnusable(Exception):
    """Nothing can be kept in the data directory. The message says why, and what to do."""


def usable(data_dir: Path) -> Path:
    """Make the directory if need be, and write to it: permissions alone tell root nothing, and nobody
    of a full disk.

    Returns:
        The directory.

    Raises:
        DataDirUnusable: it can't be made or written.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=data_dir, prefix="probe-", buffering=0) as probe:
            probe.write(_PROBE)
            os.fsync(probe.fileno())
    except OSError as error:
        raise DataDirUnusable(
            f"the data directory {data_dir} can't be used: {error.strerror}; free or permit it, or "
            "set IO_HARNESS_DATA to another directory"
        ) from error
    return data_dir
