"""Numbers with their intervals as table cells, and the notes that say what ± means and where it is missing.

In: values and `Interval`s. Out: strings. `57.1 ± 0.9` has one decimal, more only where the half width would
round to 0; a number whose interval could not be estimated is followed by `± –`, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Final

from agentworldbench.render.table import DASH, points, share
from agentworldbench.stats.bootstrap import LEAST
from agentworldbench.stats.intervals import FEW, Flag, Interval
from agentworldbench.stats.results import Skill

PLUS_MINUS: Final = (
    "±: half of the 95 % interval for another draw of trajectories (population); see docs/numbers.md."
)
_REASONS: Final[Mapping[Flag, str]] = {
    "one_cluster": "one trajectory alone",
    "too_few_clusters": f"fewer than {LEAST} trajectories to resample",
    "no_spread": "no spread between trajectories",
    "unstable": "resampling can leave nothing to divide by",
}
_WEAKNESSES: Final[Mapping[Flag, str]] = {
    "few_clusters": f"Rough, because it rests on fewer than {FEW} trajectories",
    "no_spread_in_part": "Too narrow, because domains without spread add nothing",
}


def score_cell(value: float | None, interval: Interval | None, scale: float = 1) -> str:
    """A score 0-100 with its interval; both are multiplied by `scale`. Without an interval as `points`."""
    if value is None or interval is None:
        return points(None if value is None else value * scale)
    return _cell(value * scale, interval, scale, 1)


def skill_cell(skill: Skill | None, policy: str) -> str:
    """Skill, or a dash."""
    if skill is None:
        return DASH
    return share_cell(getattr(skill, policy), getattr(skill.intervals, policy))


def share_cell(value: float | None, interval: Interval | None, decimals: int = 3) -> str:
    """A share or skill with half the width of its interval, which need not be symmetric."""
    return share(value) if value is None or interval is None else _cell(value, interval, 1, decimals)


def _cell(value: float, interval: Interval, scale: float, decimals: int) -> str:
    if interval.half is None:
        return f"{value:z.{decimals}f} ± {DASH}"
    half = interval.half * scale
    if half < 0.5 * 10**-decimals:
        decimals = -floor(log10(half))
    return f"{value:z.{decimals}f} ± {half:.{decimals}f}"


def interval_notes(shown: Sequence[tuple[str, Interval | None]]) -> tuple[str, ...]:
    """What ± means, and for which of the rows `shown` it is missing or weak; nothing where none is shown."""
    known = [(name, interval) for name, interval in shown if interval is not None]
    if not known:
        return ()
    missing = [f"{text} ({names})" for text, names in _named(known, _REASONS)]
    lines = [PLUS_MINUS] if any(interval.half is not None for _, interval in known) else []
    if missing:
        lines.append(f"± {DASH}: no interval: {'; '.join(missing)}.")
    lines += [f"{text}: {names}." for text, names in _named(known, _WEAKNESSES)]
    return tuple(lines)


def _named(known: Sequence[tuple[str, Interval]], texts: Mapping[Flag, str]) -> list[tuple[str, str]]:
    """The texts of the flags that occur, with the rows where they do."""
    every = dict.fromkeys(name for name, _ in known)
    rows = {flag: dict.fromkeys(name for name, one in known if flag in one.flags) for flag in texts}
    return [
        (texts[flag], "all rows" if len(names) == len(every) > 1 else "; ".join(names))
        for flag, names in rows.items()
        if names
    ]
