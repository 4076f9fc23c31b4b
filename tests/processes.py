"""Which processes run on this host (Linux)."""

from pathlib import Path


def lives(mark: str) -> bool:
    """Whether a process with this word in its command line runs on the host."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False
