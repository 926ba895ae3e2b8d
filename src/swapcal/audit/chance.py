"""What chance alone does: the swap error that perfectly calibrated forecasts would show on the same cells."""

from typing import NamedTuple

import numpy as np

from swapcal.audit.sums import SumTable
from swapcal.typing import Float64Array

__all__ = ["Chance", "chance"]

N_DRAWS = 1000
N_NORMALS = 30_000_000
"""Normal numbers that may be drawn in all; with very many cells there are fewer draws."""

SHARE = 0.95
N_PRIOR = 2
"""Terms of average size that are added to each cell."""


class Chance(NamedTuple):
    """Mean of the swap error under perfect calibration, and what it stays below in 95 streams of 100."""

    mean: float
    high: float


def chance(own: SumTable | None, linear: SumTable | None, r: float, seed: int = 0) -> Chance:
    """Chance of the swap error SMCal_r, from the sums of squares of an audit.

    Parameters
    ----------
    own : SumTable, optional
        Sums of the functions that stand by themselves.
    linear : SumTable, optional
        Sums of the coordinates of a linear class, over the same places.
    r : float
        Power of the error.
    seed : int
        Of the draws.

    Notes
    -----
    Under calibration the sum S of f V in a cell of m rounds has mean 0 and m times the variance of one term, which is
    estimated from the sums of squares; two further terms of average size keep cells of few rounds honest. S is taken as
    normal. The draws take the functions of a place as independent. By Sidak's inequality the
    maximum over functions that are not is no larger in distribution, so `high` errs on the side of calling bias chance;
    for a linear class the mean at r = 2 is that of independent coordinates exactly.

    References
    ----------
    Sidak (1967), Rectangular confidence regions for the means of multivariate normal distributions, JASA 62.
    """
    tables = [table for table in (own, linear) if table is not None]
    if not tables or not len(tables[0].count):
        return Chance(0.0, 0.0)
    n_cells = sum(int(np.count_nonzero(table.active)) for table in tables)
    n_draws = int(np.clip(N_NORMALS // max(n_cells, 1), 50, N_DRAWS))
    square = float(tables[0].vv.sum() / tables[0].count.sum())
    draw = np.random.default_rng(seed)
    total = np.zeros(n_draws)
    for i, count in enumerate(tables[0].count):
        largest = np.zeros(n_draws)
        if own is not None:
            sd = _deviations(own, i, square)
            if sd.size:
                largest = np.abs(draw.standard_normal((n_draws, sd.size)) * sd).max(axis=1)
        if linear is not None:
            sd = _deviations(linear, i, square)
            largest = np.maximum(largest, np.linalg.norm(draw.standard_normal((n_draws, sd.size)) * sd, axis=1))
        total += count * (largest / count) ** r
    return Chance(float(total.mean()), float(np.quantile(total, SHARE)))


def _deviations(table: SumTable, i: int, square: float) -> Float64Array:
    """Standard deviations of the sums at place `i`, of the functions that were not 0 there.

    `square` is the mean square of a term over all places.
    """
    there = table.active[i] > 0
    rounds, sums, squares = (each[i][there] for each in (table.active, table.xv, table.xvxv))
    spread = np.maximum(squares - sums**2 / rounds, 0.0)
    deviations: Float64Array = np.sqrt(rounds * (spread + N_PRIOR * square) / (rounds - 1 + N_PRIOR))
    return deviations
