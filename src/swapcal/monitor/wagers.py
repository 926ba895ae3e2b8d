"""What a batch of rows wins or loses for those who bet on bias: sums that add up over machines."""

from dataclasses import dataclass

import numpy as np

from swapcal.roles import Rows
from swapcal.typing import Float64Array

__all__ = ["RATES", "SIGNS", "Wagers", "wagers_of_means", "wagers_of_rows"]

RATES = 0.9 * 2.0 ** -np.arange(10)
"""Rates lambda of the bets. The best one is near the bias over the mean square of V."""

SIGNS = np.array([1.0, -1.0])
"""Sides: forecasts too high, forecasts too low."""


@dataclass(frozen=True, eq=False)
class Wagers:
    """Log gains of a batch, per group, side and rate; and its rows.

    Parameters
    ----------
    gains : array, shape (groups, 2, 10)
        l = sum over rows of log(1 + s lambda f V) - log(1 + lambda eps |f|).
    rows : array, shape (groups,)
        Rows of each group.
    parts : array, shape (groups,)
        Each row counts as 1, in equal parts for all its groups: the sum over groups is at most the number of rows.
    n_rows : int
        Rows of the batch.

    Examples
    --------
    >>> one = Wagers(np.zeros((1, 2, 10)), np.ones(1), np.ones(1), 1)
    >>> (one + one).n_rows
    2
    """

    gains: Float64Array
    rows: Float64Array
    parts: Float64Array
    n_rows: int

    def __add__(self, other: "Wagers") -> "Wagers":
        """The batch of both: rows of one period that were looked at on two machines."""
        return Wagers(
            self.gains + other.gains, self.rows + other.rows, self.parts + other.parts, self.n_rows + other.n_rows
        )


def wagers_of_rows(v: Float64Array, rows: Rows, n: int, tolerance: float) -> Wagers:
    """Bets on every row.

    Notes
    -----
    If s E[V | before] <= eps, then E[1 + s lambda f V | before] <= 1 + lambda eps |f| for a group's f >= 0 (and for f
    of either sign, if the bias that is not tolerated is that of f V). So e^l has a conditional mean of at most 1:
    nobody gets rich by betting on a bias that is not there.
    """
    lengths = np.diff(rows.indptr)
    entry_row = np.repeat(np.arange(len(v)), lengths)
    gains = np.zeros((2, len(RATES), n))
    ones = bool((rows.values == 1.0).all())
    terms = v if ones else rows.values * v[entry_row]
    size = np.ones(1) if ones else np.abs(rows.values)
    for s, sign in enumerate(SIGNS):
        for j, rate in enumerate(RATES):
            log_gains = np.log1p(sign * rate * terms) - np.log1p(rate * tolerance * size)
            gains[s, j] = np.bincount(rows.indices, log_gains[entry_row] if ones else log_gains, n)
    with np.errstate(divide="ignore"):
        shares = 1.0 / lengths
    count = np.bincount(rows.indices, minlength=n).astype(np.float64)
    parts: Float64Array = np.bincount(rows.indices, shares[entry_row], n).astype(np.float64)
    return Wagers(np.moveaxis(gains, 2, 0), count, parts, len(v))


def wagers_of_means(
    total: Float64Array, size: Float64Array, rows: Float64Array, parts: Float64Array, n_rows: int, tolerance: float
) -> Wagers:
    """One bet for each group on its mean of V in a cluster, `total` / `size`, however its rows depend on each other."""
    mean = np.divide(total, size, out=np.zeros_like(total), where=size > 0)[:, None, None]
    gains = np.log1p(SIGNS[:, None] * RATES * mean) - np.log1p(RATES * tolerance)
    return Wagers(np.where(rows[:, None, None] > 0, gains, 0.0), rows, parts, n_rows)
