"""For the whole suite: its processes, their bytecode, and the profile of its properties."""

import os

import pytest
from hypothesis import settings

# Hundreds of processes that tests start import the same modules: each would compile them anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes is the machine's business; what hangs meets pytest's time-out.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for each processor: tests of servers and workers wait for most of their time."""
    return 2 * (os.cpu_count() or 1)
