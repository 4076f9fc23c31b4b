"""A sample of `python -m tests.crash.exhaustive`: the worker and the server killed at some events and
points of a run, chosen at random."""

import random
from pathlib import Path

import pytest

from .exhaustive import HEAD, MOMENTS, play_all
from .scene import Case

EVENTS = 90
"""Of the scripted run, over continue-as-new."""


@pytest.mark.timeout(400)
async def test_a_kill_at_any_event_loses_and_doubles_nothing(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    cases = [
        None,
        *(Case("worker", at) for at in moments.sample(range(1, EVENTS), 2)),
        *(Case("worker", moment) for moment in moments.sample(MOMENTS, 2)),
        *(Case("server", at) for at in moments.sample(range(10, EVENTS), 2)),
    ]
    print(f"seed {seed}\n{HEAD}")
    rows = await play_all(cases, tmp_path, seed, at_once=len(cases))
    assert [row for row in rows if row.wrong] == []
    assert sum(bool(row.killed_at) for row in rows) >= 4
    assert all(row.executions > 1 for row in rows), "the server's suggestion was not followed"
