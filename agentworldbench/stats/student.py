"""Quantiles of Student's t distribution, without scipy.

In: a probability and degrees of freedom, which need not be whole (Satterthwaite's are not). Out: the
quantile, to ten digits. Below `MANY` degrees of freedom the distribution is written as an incomplete beta
function, evaluated by its continued fraction, and inverted by Newton's method [Abramowitz & Stegun 1964,
26.7.1 and 26.5.8]; above, the normal quantile is corrected by four terms in 1/df [26.7.5].
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi
from statistics import NormalDist
from typing import Final

MANY: Final = 1000.0
"""Degrees of freedom from which on four terms of the expansion are exact to more than ten digits."""
_STEPS: Final = 500
_TINY: Final = 1e-300


@lru_cache(maxsize=256)
def student_t(probability: float, df: float) -> float:
    """The t below which a share `probability` (0.5 to below 1) of Student's t with `df` >= 1 lies."""
    if not (0.5 <= probability < 1 and df >= 1):
        raise ValueError(f"no quantile of t at {probability} with {df} degrees of freedom")
    normal = NormalDist().inv_cdf(probability)
    if df >= MANY:
        return _expanded(normal, df)
    if probability == 0.5:
        return 0.0
    tail = 1 - probability
    t = max(normal, 1e-3)
    for _ in range(_STEPS):
        # Where the density is small, Newton in log(tail) against log(t) neither overshoots nor stalls.
        above = upper_tail(t, df)
        step = log(above / tail) * above / (t * _density(t, df))
        t *= exp(max(-1.0, min(1.0, step)))
        if abs(step) < 1e-14:
            break
    return t


def upper_tail(t: float, df: float) -> float:
    """The share of Student's t with `df` degrees of freedom above `t` > 0: half of I_x(df/2, 1/2), x = df / (df + t^2)."""
    x = df / (df + t * t)
    a, b = df / 2, 0.5
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(t * t / (df + t * t)))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a / 2
    return (1 - front * _fraction(1 - x, b, a) / b) / 2


def _density(t: float, df: float) -> float:
    constant = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    return exp(constant - (df + 1) / 2 * log1p(t * t / df))


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = 1.0
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            factor = c * d
            value *= factor
        if abs(factor - 1) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    """`value`, moved off zero, so that it can be divided by."""
    return value if abs(value) > _TINY else _TINY


def _expanded(z: float, df: float) -> float:
    z2 = z * z
    terms = (
        (z2 + 1) / 4,
        ((5 * z2 + 16) * z2 + 3) / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    return z + z * sum(term / df**power for power, term in enumerate(terms, start=1))
