"""`kill -9` at random moments, with a server whose log counts what was asked (`benchmarks/kills.py` in small)."""

from __future__ import annotations

import pytest

from benchmarks.kills import trial

KILLS = 8


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_finished_is_lost_or_asked_twice() -> None:
    found = trial(KILLS, seed=1, trajectories=1)
    assert found.kills == KILLS
    assert found.working > 0
    assert found.finished >= 2 * 35 * found.directories
    assert (found.lost, found.asked_twice, found.unequal) == (0, 0, 0)
