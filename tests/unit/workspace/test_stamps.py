"""What tells a changed file from one that is as it was."""

import os
import time
from pathlib import Path

from io_harness.activities.stamps import stamp_of


def test_a_change_of_the_same_size_whose_time_was_set_back_shows(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    was = file.stat()
    later = time.time_ns() + 60_000_000_000  # when all of this has settled
    before = stamp_of(was, later)
    assert before is not None
    assert stamp_of(file.stat(), later) == before
    while file.stat().st_ctime_ns == was.st_ctime_ns:
        time.sleep(0.01)  # the file system's clock is coarse
        file.write_text("two")
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.stat().st_mtime_ns == was.st_mtime_ns
    assert stamp_of(file.stat(), later) != before
