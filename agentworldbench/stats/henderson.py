"""Sums of squares over the divisions of unbalanced data, and the variances that explain them.

In: values, the trajectory (cluster) of each, and divisions of the values: the levels of one source of variance
each. Out: by division the variance of the effects of its levels, by Henderson's method I [Henderson 1953; Searle,
Casella & McCulloch 1992, chapter 5]. All that it needs are sums over trajectories, so it is solved as easily
for any draw of trajectories as for those that were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Codes = NDArray[np.int64]

_SINGULAR: Final = 1e10
"""Condition number from which on the equations tell nothing apart."""


class SumsOfSquares:
    """T_A = sum over the levels of A of (sum of the level)^2 / n_a, and what it is on average.

    With random effects of variance v_c, E T_A = N mean^2 + sum of k(A, c) v_c, where k(A, c) is the sum over the
    levels a of A of (sum over the levels of c of n_ac^2) / n_a. The mean is a division with one level; T_A less
    its T is free of it, so values are centred first, for the sake of rounding. Of the divisions, at most one (the
    judges) may run across trajectories. `by_trajectory` has one row of sums for each trajectory; rows are added
    up before `estimates` solves for the v_c.
    """

    by_trajectory: Numbers

    def __init__(self, values: Numbers, trajectories: Codes, divisions: Sequence[Codes]) -> None:
        import numpy as np

        self._divisions = range(len(divisions))
        self._columns: dict[tuple[object, ...], slice] = {}
        self._trajectories = trajectories
        self._rows: list[Numbers] = []
        self._width = 0
        self._crossed: int | None = None
        values = values - values.mean()
        ones = np.ones(len(values))
        self._add(("n",), ones)
        self._add(("sum",), values)
        for place, codes in enumerate(divisions):
            if not _refines(codes, trajectories):
                self._crossed = place
        for place, codes in enumerate(divisions):
            if place == self._crossed:
                self._add(("n", place), ones, across=codes)
                self._add(("sum", place), values, across=codes)
                continue
            sizes = np.bincount(codes)
            level_sums = np.bincount(codes, weights=values)
            self._add(("squares", place), level_sums[codes] ** 2 / sizes[codes] ** 2)
            self._add(("own", place), sizes[codes].astype(np.float64))
            if self._crossed is not None:
                judges = divisions[self._crossed]
                self._add(("own", place, "across"), _shared(codes, judges), across=judges)
            for other in self._divisions:
                self._add(("k", place, other), _shared(codes, divisions[other]) / sizes[codes])
        self.by_trajectory = np.concatenate(self._rows, axis=1)
        self._rows = []

    def _add(self, name: tuple[object, ...], shares: Numbers, across: Codes | None = None) -> None:
        """A column of sums over each trajectory's values, or one for each level of `across`."""
        import numpy as np

        levels = 1 if across is None else int(across.max()) + 1
        places = self._trajectories * levels + (0 if across is None else across)
        count = int(self._trajectories.max()) + 1
        sums: Numbers = np.bincount(places, weights=shares, minlength=count * levels).astype(np.float64)
        self._rows.append(sums.reshape(count, levels))
        self._columns[name] = slice(self._width, self._width + levels)
        self._width += levels

    def estimates(self, sums: Numbers) -> Numbers:
        """The variances by row of `sums` and division, negative ones as they come; NaN in a row whose equations
        have no single solution."""
        import numpy as np

        count = len(self._divisions)
        whole, total = self._of(sums, "n")[:, 0], self._of(sums, "sum")[:, 0]
        of_mean = np.stack([self._of_mean(sums, c) for c in self._divisions], axis=1) / whole[:, None]
        squares = np.empty((len(sums), count))
        factors = np.empty((len(sums), count, count))
        for a in self._divisions:
            if a == self._crossed:
                squares[:, a] = _over(self._of(sums, "sum", a) ** 2, self._of(sums, "n", a))
                for c in self._divisions:
                    factors[:, a, c] = (
                        whole if c == a else _over(self._of(sums, "own", c, "across"), self._of(sums, "n", a))
                    )
            else:
                squares[:, a] = self._of(sums, "squares", a)[:, 0]
                for c in self._divisions:
                    factors[:, a, c] = self._of(sums, "k", a, c)[:, 0]
        squares_of_mean: Numbers = total**2 / whole
        squares -= squares_of_mean[:, None]
        factors -= of_mean[:, None, :]
        singular = np.linalg.cond(factors) > _SINGULAR
        factors[singular] = np.eye(count)
        solved: Numbers = np.linalg.solve(factors, squares[..., None])[..., 0].astype(np.float64)
        solved[singular] = np.nan
        return solved

    def _of(self, sums: Numbers, *name: object) -> Numbers:
        return sums[:, self._columns[name]]

    def _of_mean(self, sums: Numbers, division: int) -> Numbers:
        """Sum over the levels of a division of their squared sizes."""
        if division == self._crossed:
            squared: Numbers = (self._of(sums, "n", division) ** 2).sum(axis=1)
            return squared
        return self._of(sums, "own", division)[:, 0]


def _refines(codes: Codes, trajectories: Codes) -> bool:
    """Whether every level lies in one trajectory."""
    import numpy as np

    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return bool((trajectories[first][inverse] == trajectories).all())


def _shared(codes: Codes, others: Codes) -> Numbers:
    """For each value, how many share its level in both divisions."""
    import numpy as np

    _, inverse, sizes = np.unique(
        codes * (int(others.max()) + 1) + others, return_inverse=True, return_counts=True
    )
    shared: Numbers = sizes[inverse].astype(np.float64)
    return shared


def _over(above: Numbers, sizes: Numbers) -> Numbers:
    """Sum over levels of `above` / size; a level that a draw leaves out adds nothing."""
    import numpy as np

    quotients: Numbers = np.divide(above, sizes, out=np.zeros(above.shape), where=sizes > 0).sum(axis=1)
    return quotients
