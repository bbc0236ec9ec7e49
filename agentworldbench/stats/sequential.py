"""A sequential test on paired differences: is a claimed mean what one gets again, or is it inflated?

In: differences new - claimed in points of a score (-100 to 100), one at a time, in a drawn order. Out: after each
`rejected`, `accepted` or nothing yet. Two bettors play [Waudby-Smith & Ramdas 2024, "Estimating means of bounded
random variables by betting"; Ville 1939]. One bets that new verdicts are lower: if the claim is honest, new and claimed
verdicts are two draws of one judge, every difference has mean 0, and his capital reaches 1/`ALPHA` with a probability
of at most `ALPHA`, however often one looks and whatever the noise. The other bets that they are not lower by the margin: if
the mean was raised by it, his capital reaches 1/`BETA` with a probability of about `BETA` or less (exactly with
draws put back; without, products of fixed bets are smaller by Maclaurin's inequality).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ALPHA: Final = 0.05
"""Probability of rejecting an honest claim, at most."""
BETA: Final = 0.10
"""Probability of accepting a claim that is inflated by the margin."""
MARGIN: Final = 5.0
"""Points by which a claim must be inflated to be worth rejecting."""
ASSUMED_NOISE: Final = 14.0
"""Standard deviation of a difference where nothing is known: two verdicts that each scatter by 10 points."""
MOST_AT_STAKE: Final = 0.75
"""Share of a capital that one difference can take at most."""
_PRIOR: Final = 8
"""How many differences the assumed noise is worth."""
Decision = Literal["accepted", "rejected"]


@dataclass
class PairedTest:
    """The two capitals after the differences so far. `noise` (points) only makes bets good; both error rates hold
    whatever it is."""

    margin: float = MARGIN
    noise: float = ASSUMED_NOISE
    against: float = 1.0
    on_its_side: float = 1.0
    count: int = 0
    _sum: float = 0.0
    _squares: float = 0.0

    def add(self, difference: float) -> Decision | None:
        """Take one difference in points; the decision, or None while there is none.

        Raises ValueError for a difference outside of -100 to 100.
        """
        if not -100 <= difference <= 100:
            raise ValueError(f"a difference of {difference} points; scores are 0 to 100")
        step, margin = difference / 100, self.margin / 100
        bet = self._bet()  # from earlier differences alone: else nothing would hold
        self.against *= 1 - bet * step
        self.on_its_side *= 1 + bet * (step + margin)
        self.count += 1
        self._sum += step
        self._squares += step * step
        if self.against >= 1 / ALPHA:
            return "rejected"
        return "accepted" if self.on_its_side >= 1 / BETA else None

    def _bet(self) -> float:
        """The share of the capital that grows fastest if the mean is off by the margin [Kelly 1956, second order]."""
        margin, prior = self.margin / 100, (self.noise / 100) ** 2
        mean = self._sum / self.count if self.count else 0.0
        spread = max(self._squares - self.count * mean * mean, 0.0)
        variance = (_PRIOR * prior + spread) / (_PRIOR + self.count)
        return min(margin / (variance + margin * margin), MOST_AT_STAKE / (1 + margin))

    @property
    def mean(self) -> float | None:
        """Mean difference in points."""
        return 100 * self._sum / self.count if self.count else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the differences in points."""
        if self.count < 2:
            return None
        mean = self._sum / self.count
        spread = max(self._squares - self.count * mean * mean, 0.0)
        return float(100 * (spread / (self.count - 1)) ** 0.5)
