"""Intervals of the bias for outcomes of any kind, from sums and sums of squares; exact in the limit only.

Notation: X_1, X_2, ... are the terms of a cell, one for each row (w f V, with a weight w and a function's value f) or
one for each cluster of rows (their sum); m is their number, S their sum, Q the sum of their squares. N is what S is
divided by to get the bias: the sum of w |f| over the rows, which is the number of rows of a group without weights.

Exact intervals for outcomes in a range pay for the range: at 200 rows they are several times wider than Student's.
These pay for the spread that is seen. What is given up: the guarantee holds in the limit of many terms, so nothing is
claimed below `FEWEST_ROWS` rows or `FEWEST_CLUSTERS` clusters.
"""

import numpy as np

from swapcal.audit.binary_intervals import BiasInterval, LogWealth
from swapcal.typing import Float64Array

__all__ = ["FEWEST_CLUSTERS", "FEWEST_ROWS", "asymptotic_bias", "asymptotic_evidence", "asymptotic_radius"]

FEWEST_ROWS = 100
FEWEST_CLUSTERS = 30
TYPICAL_ROWS = 1000
TYPICAL_CLUSTERS = 200
"""Where the sequence is narrowest; elsewhere it is wider by the root of a logarithm."""

N_PRIOR = 20
"""Terms of usual size that are added to Q. Where outcomes are skewed, the large ones of a small cell may not have come
yet, and its own spread would be far too small."""


def asymptotic_radius(
    terms: Float64Array,
    total: Float64Array,
    squares: Float64Array,
    delta: Float64Array | float,
    *,
    usual: Float64Array | float = 0.0,
    clusters: bool = False,
) -> Float64Array:
    r"""F3: radius of the sum S; infinite where there are too few terms.

    .. math:: R = \hat\sigma \sqrt{\frac{2 (m \rho^2 + 1)}{\rho^2} \ln\frac{\sqrt{m \rho^2 + 1}}{\delta}},
              \quad \hat\sigma^2 = (Q + 20 u - S^2 / m) / (m - 1).

    Guarantee, in the limit: |S - sum of E[X_t | before]| <= R at all times from the first that counts on, with
    probability at least 1 - delta. Terms may be of any distribution with more than two moments, and their means and
    variances may change; different means make the radius larger than need be. With `clusters`, rows of one cluster may
    depend on each other in any way.

    Parameters
    ----------
    terms, total, squares : array
        m, S and Q of each cell.
    delta : float or array
        Error rate, of all cells or of each.
    usual : float or array
        u, the mean square of a term over the whole stream (for clusters: the mean square of V times the rows of the
        cell per cluster). The default leaves it out, and falls short where outcomes are skewed: of cells of log-normal
        outcomes, each left when it looked worst between rows 100 and 2,000, 1.2 % missed at delta = 0.001 without,
        and 0.4 % with it.
    clusters : bool
        Whether a term is a cluster's sum.

    Notes
    -----
    Robbins' normal mixture, with the estimated variance in the place of the known one. Waudby-Smith et al. (2024) prove
    that this is a confidence sequence in the limit, for equal terms and for martingales with changing means and
    variances. rho makes it narrow at 1,000 rows or 200 clusters.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas (2024), Time-uniform central limit theory and asymptotic confidence
    sequences, Annals of Statistics 52(6).

    Examples
    --------
    >>> one = np.ones(1)
    >>> asymptotic_radius(1000 * one, 0 * one, 250 * one, 0.05).round(1), asymptotic_radius(99 * one, one, one, 0.05)
    (array([48.]), array([inf]))
    """
    rho = _rho_squared(delta, clusters)
    inside = terms * rho + 1.0
    radius = np.sqrt(
        _variance(terms, total, squares, usual) * 2.0 * inside / rho * (np.log(inside) / 2.0 - np.log(delta))
    )
    return np.where(terms >= (FEWEST_CLUSTERS if clusters else FEWEST_ROWS), radius, np.inf)


def asymptotic_bias(
    terms: Float64Array,
    total: Float64Array,
    squares: Float64Array,
    size: Float64Array,
    delta: Float64Array | float,
    *,
    usual: Float64Array | float = 0.0,
    clusters: bool = False,
) -> BiasInterval:
    """The interval [S - R, S + R] / N, cut to [-1, 1], where V lies; `size` is N. Empty cells have [-1, 1].

    Examples
    --------
    >>> one = np.ones(1)
    >>> found = asymptotic_bias(1000 * one, 100 * one, 260 * one, 1000 * one, 0.05)
    >>> found.low.round(3), found.high.round(3)
    (array([0.052]), array([0.148]))
    """
    radius = asymptotic_radius(terms, total, squares, delta, usual=usual, clusters=clusters)
    size = np.maximum(size, np.finfo(np.float64).tiny)
    return BiasInterval(np.maximum((total - radius) / size, -1.0), np.minimum((total + radius) / size, 1.0))


def asymptotic_evidence(
    terms: Float64Array,
    total: Float64Array,
    squares: Float64Array,
    size: Float64Array,
    delta: float,
    tolerance: float = 0.0,
    *,
    usual: Float64Array | float = 0.0,
    clusters: bool = False,
) -> LogWealth:
    r"""Logarithms of the e-values behind F3, in the limit: for a bias above `tolerance`, and below minus that.

    .. math:: \ln E = \frac{\rho^2 D^2}{2 \hat\sigma^2 (m \rho^2 + 1)} - \frac12 \ln(m \rho^2 + 1),
              \quad D = S - N \, \mathrm{tolerance}

    where D is positive, and its second term elsewhere. Too few terms are no evidence: 0.

    Parameters
    ----------
    delta : float
        The error rate of one cell for which rho is set. E is at least 1 / delta exactly where the interval of
        `asymptotic_bias` at this delta leaves out the tolerance: this is one two-sided test, so both sides may be
        compared with 1 / delta (`both_sides` with `one_test`).

    Examples
    --------
    >>> one = np.ones(1)
    >>> asymptotic_evidence(1000 * one, 100 * one, 260 * one, 1000 * one, 0.05).too_high.round(1)
    array([16.6])
    """
    rho = _rho_squared(delta, clusters)
    inside = terms * rho + 1.0
    variance = _variance(terms, total, squares, usual)
    enough = terms >= (FEWEST_CLUSTERS if clusters else FEWEST_ROWS)

    def side(deviation: Float64Array) -> Float64Array:
        positive = np.maximum(deviation, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(positive > 0, rho * positive**2 / (2.0 * variance * inside), 0.0)
        return np.where(enough, gain - np.log(inside) / 2.0, 0.0)

    return LogWealth(side(total - tolerance * size), side(-total - tolerance * size))


def _rho_squared(delta: Float64Array | float, clusters: bool) -> Float64Array:
    level = -2.0 * np.log(delta)
    rho: Float64Array = np.asarray((level + np.log1p(level)) / (TYPICAL_CLUSTERS if clusters else TYPICAL_ROWS))
    return rho


def _variance(
    terms: Float64Array, total: Float64Array, squares: Float64Array, usual: Float64Array | float
) -> Float64Array:
    several = np.maximum(terms, 2.0)
    return (np.maximum(squares - total**2 / several, 0.0) + N_PRIOR * usual) / (several - 1.0)
