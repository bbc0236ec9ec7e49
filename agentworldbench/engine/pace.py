"""How fast records have come of late, for the time that is left: on a terminal and under `awb view` alike.

In: the moments at which they came, in seconds on any clock. Out: records a second over the last minutes. An
average over the whole session would take a pause of an hour ago, or the fast beginning, for the pace of now.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW: Final = 120.0
"""Seconds that are looked back on."""
LEAST: Final = 3
"""Records before anything is said of a pace, and those that are looked back on however long ago they came."""


class Speed:
    """Moments since `begin`, gathered by the second, as (second, records until its end)."""

    def __init__(self) -> None:
        self._count = 0
        self._points: deque[tuple[float, int]] = deque()

    def begin(self, now: float) -> None:
        """The work begins: what comes until the first record counts as time."""
        self._points.append((now, self._count))

    def note(self, now: float) -> None:
        """A record came; never before the one before it, whatever `now` says."""
        self._count += 1
        points = self._points
        now = max(now, points[-1][0]) if points else now
        if len(points) > 1 and now - points[-2][0] < 1.0:
            points[-1] = (now, self._count)
        else:
            points.append((now, self._count))
        while len(points) > 1 and points[1][0] < now - WINDOW and self._count - points[1][1] >= LEAST:
            points.popleft()

    def rate(self, now: float) -> float | None:
        """Records a second until `now`, a pause since the last one included; None while there are too few."""
        if not self._points or self._count < LEAST:
            return None
        since, before = self._points[0]
        return (self._count - before) / (now - since) if now > since else None
