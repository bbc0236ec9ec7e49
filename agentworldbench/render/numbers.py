"""Numbers with their intervals as table cells, and the notes that say what ± means and where it is missing.

In: values and `Interval`s. Out: strings. `57.1 ± 0.9` has one decimal, more only where the half width would
round to 0; a number whose interval could not be estimated is followed by `± –`, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final, Literal

from agentworldbench.render.table import DASH, points, share
from agentworldbench.stats.bootstrap import LEAST
from agentworldbench.stats.intervals import FEW, Flag, Interval
from agentworldbench.stats.results import Skill

PLUS_MINUS: Final = (
    "±: half of the 95 % interval for another draw of trajectories (population); see docs/numbers.md."
)
MOST: Final = 100.0
"""The highest score, and the largest difference of two."""
DIFFERENCE: Final = -100.0
"""The least that the difference of two scores can be; the least score is 0."""
_REASONS: Final[Mapping[str, str]] = {
    "one_cluster": "one trajectory alone",
    "too_few_clusters": f"fewer than {LEAST} trajectories to resample",
    "no_spread": "no spread between trajectories",
    "unstable": "resampling can leave nothing to divide by",
    "whole_scale": "so few trajectories, or so unlike, that the interval holds the whole scale and tells nothing",
}
_WEAKNESSES: Final[Mapping[str, str]] = {
    "few_clusters": f"Rough, because it rests on fewer than {FEW} trajectories",
    "no_spread_in_part": "Too narrow, because domains without spread add nothing",
}


@dataclass(frozen=True)
class Shown:
    """An interval as it is shown, in points. All numbers are None where there is none; `flags` then say why, and else what
    weakens it. `whole_scale` is the one that no stored interval has."""

    low: float | None
    high: float | None
    half: float | None
    flags: tuple[Flag | Literal["whole_scale"], ...]


Named = tuple[str, Interval | Shown | None]
"""What is said of a row's interval, by the row's name."""


def in_points(interval: Interval | Shown | None, scale: float = 1, least: float = 0.0) -> Shown | None:
    """An interval (its numbers times `scale`) as it is shown on the scale from `least` to 100: its ends cut at those of
    the scale, half the width as it is; none where it holds the whole scale. What is stored, and what is computed from
    it, is never cut."""
    if interval is None or isinstance(interval, Shown):
        return interval
    if interval.low is None or interval.high is None or interval.half is None:
        return Shown(None, None, None, interval.flags)
    low, high = interval.low * scale, interval.high * scale
    if low <= least and high >= MOST:
        return Shown(None, None, None, ("whole_scale",))
    return Shown(max(low, least), min(high, MOST), interval.half * scale, interval.flags)


def score_cell(
    value: float | None, interval: Interval | Shown | None, scale: float = 1, least: float = 0.0
) -> str:
    """A score 0-100, or a difference of two, with its interval as `in_points` shows it; the value is multiplied by
    `scale` too. Without an interval as `points`."""
    shown = in_points(interval, scale, least)
    if value is None or shown is None:
        return points(None if value is None else value * scale)
    return _cell(value * scale, shown, 1)


def width(half: float) -> str:
    """Half a width in points, or a difference that would be found; one beyond the scale is only said to be so."""
    return f"> {MOST:.0f}" if half > MOST else f"{half:.2f}"


def skill_cell(skill: Skill | None, policy: str) -> str:
    """Skill, or a dash."""
    if skill is None:
        return DASH
    return share_cell(getattr(skill, policy), getattr(skill.intervals, policy))


def share_cell(value: float | None, interval: Interval | None, decimals: int = 3) -> str:
    """A share or skill with half the width of its interval, which need not be symmetric."""
    return share(value) if value is None or interval is None else _cell(value, interval, decimals)


def _cell(value: float, interval: Interval | Shown, decimals: int) -> str:
    if interval.half is None:
        return f"{value:z.{decimals}f} ± {DASH}"
    half = interval.half
    if half < 0.5 * 10**-decimals:
        decimals = -floor(log10(half))
    return f"{value:z.{decimals}f} ± {half:.{decimals}f}"


def interval_notes(shown: Sequence[Named]) -> tuple[str, ...]:
    """What ± means, and for which of the rows `shown` it is missing or weak; nothing where none is shown. Intervals of
    scores come from `in_points`."""
    known = [(name, interval) for name, interval in shown if interval is not None]
    if not known:
        return ()
    missing = [f"{text} ({names})" for text, names in _named(known, _REASONS)]
    lines = [PLUS_MINUS] if any(interval.half is not None for _, interval in known) else []
    if missing:
        lines.append(f"± {DASH}: no interval: {'; '.join(missing)}.")
    lines += [f"{text}: {names}." for text, names in _named(known, _WEAKNESSES)]
    return tuple(lines)


def _named(known: Sequence[tuple[str, Interval | Shown]], texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The texts of the flags that occur, with the rows where they do."""
    every = dict.fromkeys(name for name, _ in known)
    rows = {flag: dict.fromkeys(name for name, one in known if flag in one.flags) for flag in texts}
    return [
        (texts[flag], "all rows" if len(names) == len(every) > 1 else "; ".join(names))
        for flag, names in rows.items()
        if names
    ]
