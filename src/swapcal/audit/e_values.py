"""Which of many cells are off: counts with a bounded share of false ones, from e-values (e-BH)."""

import math

import numpy as np
import numpy.typing as npt

from swapcal.audit.binary_intervals import LogWealth
from swapcal.typing import Float64Array

__all__ = ["both_sides", "discoveries"]


def both_sides(evidence: LogWealth, *, one_test: bool = False) -> Float64Array:
    """Log e-values for "off, on the side that it seems to be": half the larger side's, or the larger side's.

    Two one-sided claims are made for each cell, so each gets half of the cell's share. A cell that is off to the other
    side than the one named counts as a false discovery.

    Parameters
    ----------
    evidence : LogWealth
        Of both sides.
    one_test : bool
        Whether one martingale is behind both sides, as it is for `asymptotic_evidence`: then nothing is halved. Where
        the true bias is at most 0, D is at most S minus the sum of means, so that the side "too high" is at most
        the mixture at the true mean; the same mixture bounds the side "too low" where the bias is at least 0.

    Examples
    --------
    >>> both_sides(LogWealth(np.log([8.0]), np.log([0.1]))).round(3) == np.log([4.0]).round(3)
    array([ True])
    """
    larger: Float64Array = np.maximum(evidence.too_high, evidence.too_low)
    return larger if one_test else larger - math.log(2.0)


def discoveries(log_e: Float64Array, rate: float, n_possible: int | None = None) -> npt.NDArray[np.bool_]:
    r"""e-BH: the cells to call off, so that on average at most `rate` of those called are not.

    The k cells with the largest e-values are called, for the largest k with

    .. math:: e_{(k)} \ge K / (k \, \mathrm{rate}).

    Guarantee: E[false / max(called, 1)] <= rate, whatever the dependence between cells, at any stopping time.

    Parameters
    ----------
    log_e : array, shape (cells,)
        Logarithms of e-values, as `both_sides` gives them.
    rate : float
        False discovery rate, such as 0.05.
    n_possible : int, optional
        K, the number of cells that there could be; default: the number of cells given. What was left out must have been
        left out for other reasons than its e-value.

    Notes
    -----
    Proof: a false cell is called only if e >= K / (rate * called), so false / called <= sum over cells of
    rate * e * 1{its null is true} / K, and each term has expectation at most rate / K. That nulls ("the average
    conditional bias over the rows so far is at most 0") are random here changes nothing: e * 1{null} is at most a
    martingale that starts at 1. Bonferroni is k = 1, so every cell whose interval at delta = rate / K leaves out 0 is
    among the cells called.

    References
    ----------
    Wang, Ramdas (2022), False discovery rate control with e-values, JRSS B 84(3).

    Examples
    --------
    >>> discoveries(np.log([100.0, 70.0, 12.0, 0.3]), 0.1)
    array([ True,  True, False, False])
    """
    called = np.zeros(len(log_e), dtype=np.bool_)
    if not len(log_e):
        return called
    n_cells = max(len(log_e), n_possible or 0)
    order = np.argsort(-log_e, kind="stable")
    needed = math.log(n_cells / rate) - np.log(np.arange(1, len(log_e) + 1))
    enough = np.flatnonzero(log_e[order] >= needed)
    if enough.size:
        called[order[: enough[-1] + 1]] = True
    return called
