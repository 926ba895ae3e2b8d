"""Intervals of the bias for one look at independent binary outcomes: a frozen model, judged once.

Notation as in `binary_intervals`: n rows, Y ones, P the sum of forecasts.
"""

from statistics import NormalDist

import numpy as np

from swapcal.audits.intervals import BiasInterval, possible
from swapcal.typing import Float64Array


def independent_bias(count: Float64Array, ones: Float64Array, forecasts: Float64Array, delta: float) -> BiasInterval:
    """The interval for one look at independent outcomes of a frozen model; no wider than the binomial tails demand.

    Guarantee: if the y_t are independent given all forecasts and contexts, with means that may differ, and n is fixed,
    then the bias of each cell lies in its interval with probability at least 1 - delta.

    Notes
    -----
    Let m be the average of the means. Zubkov and Serov (2013) prove that a binomial count reaches Y with probability at
    most the normal tail at sqrt(2 n KL((Y - 1) / n, m)), where Y - 1 > n m; Chernoff's bound is exp(-n KL(Y / n, m)).
    Hoeffding (1956) proves that different means with the same average make no tail beyond n m + 1 larger. Both bounds
    fall as Y grows, so for each m the better one may be used. Widths are those of Clopper and Pearson, whose proof
    needs equal means, but for the one row in Y - 1.

    References
    ----------
    Zubkov, Serov (2013), A complete proof of universal inequalities for the distribution function of the binomial law,
    Theory of Probability and Its Applications 57(3). Hoeffding (1956), On the distribution of the number of successes
    in independent trials, Annals of Mathematical Statistics 27(3).

    Examples
    --------
    >>> found = independent_bias(np.array([2000.0]), np.array([500.0]), np.array([620.0]), 0.05)
    >>> found.low.round(3), found.high.round(3)
    (array([0.04]), array([0.079]))
    """
    rows = np.maximum(count, 1.0)
    low = _independent_lower(rows, count - ones, delta) - 1.0 + forecasts / rows
    high = forecasts / rows - _independent_lower(rows, ones, delta)
    return possible(low, high, count, forecasts)


def _independent_lower(n: Float64Array, Y: Float64Array, delta: float) -> Float64Array:
    """Largest m that is proved to be too small for Y ones; 0 if there are none."""
    z = NormalDist().inv_cdf(1.0 - delta / 2.0) if delta > 1e-12 else -NormalDist().inv_cdf(delta / 2.0)
    normal = _entropy_lower(np.maximum(Y - 1.0, 0.0) / n, z * z / 2.0 / n)
    chernoff = _entropy_lower(Y / n, -np.log(delta / 2.0) / n)
    one = np.where(Y >= 1.0, delta / 2.0 / n, 0.0)  # P(Y >= 1) <= n m, whatever the means
    return np.maximum(np.maximum(normal, chernoff), one)


def _entropy_lower(share: Float64Array, level: Float64Array) -> Float64Array:
    """The m below `share` at which KL(share, m) = level, from below."""
    low, high = np.zeros(share.shape), share.copy()
    other = 1.0 - share
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(share > 0, share * np.log(share), 0.0) + np.where(other > 0, other * np.log(other), 0.0)
        for _ in range(45):
            m = (low + high) / 2
            outside = entropy - share * np.log(m) - other * np.log1p(-m) >= level
            low, high = np.where(outside, m, low), np.where(outside, high, m)
    return low
