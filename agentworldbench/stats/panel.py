"""One score of a sample from several judges, repeats of each, and several epochs.

In: the `Panel`, and of each epoch of a sample its verdicts by judge and repeat, or that the prediction failed.
Out: a `PanelScore` for the sample, 0-100, under both failure policies, with all counts it rests on. `epochs.py` makes
the scores of domains of them.

Averages are taken in this order: the repeats of a judge, the judges, the epochs, the samples. Repeats come first so that
a judge who fails more often weighs no less than the others, judges before epochs because a panel stands for one
verdict on one prediction. With one judge, one repeat and one epoch this is the rule for single verdicts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

from agentworldbench.records import Record
from agentworldbench.stats.aggregate import COLUMNS, point_score
from agentworldbench.stats.intervals import mean
from agentworldbench.stats.results import PanelCounts, Scores

Values = Mapping[str, float]
"""The values of a verdict, 1 to 5, by column (see `aggregate.strict_values`)."""


@dataclass(frozen=True)
class Panel:
    """The judges, how many of them must have a valid verdict, how often each is asked (`repeats`; not named there:
    once), and how their values are combined.

    With an even number of judges the median is the mean of the middle two. Raises ValueError for a panel that
    cannot be: no judge, one named twice, `least` not from 1 to the number of judges, no repeat.
    """

    judges: tuple[str, ...]
    least: int
    repeats: Mapping[str, int] = field(default_factory=dict)
    combine: Literal["median", "mean"] = "median"

    def __post_init__(self) -> None:
        if not self.judges or len(set(self.judges)) < len(self.judges):
            raise ValueError("a panel has at least one judge, and each once")
        if not 1 <= self.least <= len(self.judges):
            raise ValueError(f"at least {self.least} of {len(self.judges)} judges cannot be asked for")
        if min(self.repeats.values(), default=1) < 1:
            raise ValueError("each judge is asked at least once")

    @property
    def places(self) -> set[tuple[str, int]]:
        """Judge and repeat (from 1) of every verdict on a prediction."""
        return {place for judge in self.judges for place in self.of(judge)}

    def of(self, judge: str) -> list[tuple[str, int]]:
        """The places of one judge."""
        return [(judge, repeat) for repeat in range(1, self.repeats.get(judge, 1) + 1)]


@dataclass(frozen=True)
class Judged:
    """One prediction: whether it failed, and its verdicts by judge and repeat (None: asked, but not valid)."""

    verdicts: Mapping[tuple[str, int], Values | None]
    failed: bool = False


class PanelScore(Record):
    """A sample's score under both policies. `exclude` is None where no epoch has a score, `floor` only where
    none is decided."""

    exclude: Scores
    floor: Scores
    counts: PanelCounts


def panel_values(panel: Panel, verdicts: Mapping[tuple[str, int], Values | None]) -> dict[str, float] | None:
    """The panel's values of one prediction, 1 to 5; None where fewer than `least` judges have a valid verdict.

    Each column (the total and the five dimensions) is combined by itself: the total of a median panel is the
    median of the judges' totals, not the mean of five medians.

    A column that fewer than `least` judges gave has no value. Raises ValueError for a verdict that is not the
    panel's.
    """
    if strange := verdicts.keys() - panel.places:
        raise ValueError(f"no verdict of this panel: {sorted(strange)[0]}")
    judges: list[dict[str, float]] = []
    for judge in panel.judges:
        valid = [values for place in panel.of(judge) if (values := verdicts.get(place)) is not None]
        if valid:
            judges.append(_by_column(valid, least=1, combine="mean"))
    return _by_column(judges, panel.least, panel.combine) if len(judges) >= panel.least else None


def panel_score(panel: Panel, epochs: Iterable[Judged]) -> PanelScore:
    """The score of one sample from all its epochs. What failures do depends on whose they are.

    A failed verdict is the judge's. Repeats and judges measure one and the same prediction, so the others stand
    for it: it is left out while at least `least` judges have a valid verdict, and counted. With fewer judges the
    prediction has no score, which counts like a failed one. A failed prediction is the model's. Epochs are draws
    of the model and none stands for another: under `floor` it counts 0 among the sample's epochs, under `exclude`
    it is left out, and with it a sample that has no other. A prediction that waits for a verdict has no score yet,
    so that the panel is the same for all.
    """
    counts = PanelCounts()
    scored: list[dict[str, float]] = []
    decided = 0
    for one in epochs:
        values = None if one.failed else panel_values(panel, one.verdicts)
        pending = not one.failed and len(one.verdicts) < len(panel.places)
        broken = sum(verdict is None for verdict in one.verdicts.values())
        good = values is not None and not pending
        counts += PanelCounts(
            predictions=1,
            scored=int(good),
            short=int(good and broken > 0),
            failed=int(one.failed),
            too_few=int(not (one.failed or pending or good)),
            pending=int(pending),
            verdicts=len(one.verdicts),
            verdicts_failed=broken,
        )
        decided += not pending
        if values is not None and not pending:
            scored.append({name: point_score(value) for name, value in values.items()})
    columns = {name: [points[name] for points in scored if name in points] for name in COLUMNS}
    return PanelScore(
        exclude={name: mean(some) for name, some in columns.items()},
        floor={name: fsum(some) / decided if decided else None for name, some in columns.items()},
        counts=counts,
    )


def _by_column(rows: Sequence[Values], least: int, combine: Literal["median", "mean"]) -> dict[str, float]:
    """Columns that at least `least` rows have, each combined by itself."""
    columns = {name: [row[name] for row in rows if name in row] for name in COLUMNS}
    combined = statistics.median if combine == "median" else statistics.fmean
    return {name: float(combined(some)) for name, some in columns.items() if len(some) >= least}
