"""Tells by its status whether a file or folder is as it was when it was last read.

What counts is the time of the last status change (ctime). Writing, renaming and also setting another
time set it to now, and nothing without rights over the system's clock sets it otherwise.
"""

import os
from typing import NamedTuple

_SETTLED_NS = 2_000_000_000
"""Clocks of file systems are coarse, up to this. What changed less long ago may have changed again
without another time to show for it."""


class Stamp(NamedTuple):
    device: int
    inode: int
    mode: int
    size: int
    changed_ns: int


def stamp_of(status: os.stat_result, now_ns: int) -> Stamp | None:
    """What to compare later.

    Args:
        now_ns: Time, in nanoseconds since 1970, before what is to be remembered was read.

    Returns:
        None if it is too new for that; it has to be read again.
    """
    if status.st_ctime_ns > now_ns - _SETTLED_NS:
        return None
    return Stamp(status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_ctime_ns)
