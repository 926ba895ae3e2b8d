"""The realized certificate: what the draws could have done, added to what they did (docs/guarantees.md, section 5).

The draws are the only chance there is. So after some rounds everything else is known: the potential as it is, and U,
what the draws have added to it. With probability 1 - delta, U never exceeds `most_luck`; had it been that large, the
potential would be larger by the difference, and this larger potential is what the certificate promises from.
"""

import math
from collections.abc import Callable

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["most_luck", "shared"]

_SMALLEST, _LARGEST = -600, 60
_STEPS, _FINEST = 120, 1e-5


def most_luck(variance: float, delta: float) -> float:
    """What the sum of draws stays below, at all times at once, with probability 1 - delta.

    The draws X have E[X] <= 0 before each, and `variance` is the sum of X^2 / 6 + E[X^2] / 3, or more. For each rate L,
    exp(L sum X - L^2 variance) is a supermartingale; the rates 2^k share delta.

    Examples
    --------
    >>> most_luck(0.0, 0.05), 4.0 < most_luck(1.0, 0.05) < 5.0, round(most_luck(1e6, 0.05) / most_luck(1e4, 0.05))
    (0.0, True, 11)
    """
    if variance <= 0.0:
        return 0.0
    powers = np.arange(_SMALLEST, _LARGEST + 1, dtype=np.float64)
    shares = 0.5 / ((np.abs(powers) + 1.0) * (np.abs(powers) + 2.0))
    with np.errstate(over="ignore"):
        bounds = np.exp2(powers) * variance + (math.log(1.0 / delta) - np.log(shares)) / np.exp2(powers)
    return float(bounds.min())


def shared(
    deviation: Callable[[Float64Array], Float64Array],
    counts: Float64Array,
    known: Float64Array,
    rounding: Float64Array,
    budget: float,
    r: float,
) -> float:
    """The largest error that values can have which share one budget of potential.

    Parameters
    ----------
    deviation : callable
        For amounts e of shape (k,), of shape (values, k): the largest |S| of a value whose potential exceeds the least
        it can be by e.
    counts, known, rounding : array, shape (values,)
        Visits; what |S| cannot exceed in any case; the signed rounding.
    budget : float
        What all values together have.
    r : float
        Power of the error.

    Returns
    -------
    float
        At least max sum_i n_i min(1, (deviation_i(e_i) + rounding_i) / n_i)^r over e_i >= 0 with sum e_i <= budget.

    Notes
    -----
    For every price p, the maximum is at most p budget + sum_i max_e (error_i(e) - p e). On a grid of amounts, those
    between two grid points are charged the lower and credited the upper, so that any price gives a true bound; the best
    of a few is taken.
    """
    if not len(counts):
        return 0.0
    n = counts[:, None]
    if not math.isfinite(budget):
        return float(np.sum(counts * np.minimum((known + rounding) / counts, 1.0) ** r))
    budget = max(budget, 1e-12)
    amounts = budget * np.concatenate([[0.0], np.geomspace(_FINEST, 1.0, _STEPS)])
    reach = np.minimum(deviation(amounts[1:]), known[:, None]) + rounding[:, None]
    errors = n * np.minimum(reach / n, 1.0) ** r
    # Without a price nothing is saved: every value could have the whole budget.
    best = float(errors[:, -1].sum())
    for price in float(errors[:, -1].max()) / budget * np.geomspace(1e-3, 1e3, 61):
        best = min(best, price * budget + float((errors - price * amounts[:-1]).max(axis=1).sum()))
    return best
