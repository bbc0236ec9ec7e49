"""The sources of variance of all domains together, each domain weighing the same, as in the macro score.

In: the `Analysis` of each domain. Out: `MacroVariance`: by source the mean of the domains' variances, and its share of
their sum. Sources that one domain cannot tell apart are joined in the whole. Intervals of shares come from the domains'
draws of trajectories, which are independent, as of strata [Efron & Tibshirani 1993, for several samples]: the first draw
of each, the second of each, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agentworldbench.records import Record
from agentworldbench.stats.cluster_draws import drawn_interval
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.variance import NAMES, Analysis, Name, shares_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


class MacroPart(Record):
    """One source of variance, or several that some domain cannot tell apart: the mean of the domains' variances
    (squared units of the score; negative estimates counted 0), its share of all, and the share's interval over other
    trajectories."""

    names: tuple[Name, ...]
    variance: float
    share: float
    interval: Interval


class MacroVariance(Record):
    """All sources. There are no `parts` where nothing varies, or where a domain's sources cannot be told at all;
    `unknown` are the sources of which some domain has but one."""

    parts: tuple[MacroPart, ...] = ()
    unknown: tuple[Name, ...] = ()


def macro_variance(domains: Mapping[str, Analysis]) -> MacroVariance:
    """The sources of variance of the plain mean of `domains`. Those without any spread add nothing."""
    import numpy as np

    if any(one.components.reason == "not_separable" for one in domains.values()):
        return MacroVariance()
    known = [one for one in domains.values() if one.components.parts]
    unknown = {name for one in known for name in one.components.unknown}
    groups = _joined(part.names for one in known for part in one.components.parts)
    if not groups:
        return MacroVariance()
    seen = [np.array([[part.variance for part in one.components.parts]]) for one in known]
    variances = _added(known, seen, groups) / len(domains)
    trajectories = sum(one.components.trajectories for one in known)
    if all(len(one.draws) for one in known):
        drawn = shares_of(_added(known, [one.draws for one in known], groups))
        intervals = [drawn_interval(drawn[:, place], trajectories) for place in range(len(groups))]
    else:
        none = Interval(method="bootstrap", clusters=trajectories, flags=("too_few_clusters",))
        intervals = [none] * len(groups)
    rows = zip(groups, variances[0], shares_of(variances)[0], intervals, strict=True)
    return MacroVariance(
        parts=tuple(
            MacroPart(names=names, variance=round(float(v), 12), share=round(float(share), 12), interval=one)
            for names, v, share, one in rows
        ),
        unknown=tuple(name for name in NAMES if name in unknown),
    )


def _joined(parts: Iterable[Sequence[Name]]) -> list[tuple[Name, ...]]:
    """The finest groups of which every part is within one."""
    groups: list[set[Name]] = []
    for part in parts:
        touched = [group for group in groups if not group.isdisjoint(part)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(part).union(*touched))
    return sorted((tuple(name for name in NAMES if name in group) for group in groups), key=_place)


def _place(names: Sequence[Name]) -> int:
    return NAMES.index(names[0])


def _added(
    domains: Sequence[Analysis], variances: Sequence[Numbers], groups: Sequence[tuple[Name, ...]]
) -> Numbers:
    """Variances by row and group, added up over domains."""
    import numpy as np

    found = np.zeros((len(variances[0]), len(groups)))
    for one, some in zip(domains, variances, strict=True):
        for column, part in enumerate(one.components.parts):
            place = next(n for n, names in enumerate(groups) if part.names[0] in names)
            found[:, place] += some[:, column]
    return found
