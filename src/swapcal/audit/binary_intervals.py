"""Intervals of the bias where V has two values: probabilities of events, and quantiles.

Notation: y_t in {0, 1}, forecasts p_t, V_t = p_t - y_t. A cell has n rows, Y = sum of y_t, P = sum of p_t. Its bias is
the average over its rows of E[V_t | everything before y_t] = p_t - pi_t: positive where forecasts were too high. For a
quantile of level q, let y_t = 1 where the outcome is above the forecast, and p_t = 1 - q: V_t is then p_t - y_t again.

Nothing is assumed of the rows unless a name says "independent": forecasts and membership in the cell may depend on all
that came before, outcomes on each other, and one may look as often as one likes. Proofs are in `docs/audits.md`.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from swapcal.audit.tilted_bets import log_wealth, smallest_mean
from swapcal.typing import Float64Array, IntArray

__all__ = [
    "CENTERS",
    "Interval",
    "LogWealth",
    "cell_bias",
    "cell_evidence",
    "forecast_bins",
    "group_bias",
    "group_evidence",
    "independent_bias",
]

TILTS = 8.0 * 2.0 ** (-np.arange(29) / 2)
"""Exponents theta of bets on y itself. The best one is near sqrt(2 log(1/delta) / (n pi)): n pi from 1 to 10^8."""

RATES = 0.95 * 2.0 ** (-np.arange(22) / 2)
"""Rates lambda of bets on c - y, of size below 1 so that nobody goes bankrupt at any center c."""

EDGES = 1.0 / (1.0 + np.exp(-np.arange(-6.0, 6.25, 0.5)))
CENTERS = 1.0 / (1.0 + np.exp(-np.arange(-6.25, 6.5, 0.5)))
"""Fixed centers c_k of the 26 forecast bins of `group_bias`: even steps of log odds, so that rare events have bins."""

AT_ONCE = 4096
"""Cells that are worked on together: the arrays of all tilts then stay in the cache."""


def _spread(sizes: Float64Array, heart: float) -> Float64Array:
    """Log weights of tilts: largest at `heart`, for some thousand rows, with tails so heavy that none does badly."""
    weights = 1.0 / (1.0 + (np.log2(sizes / heart) / 3.0) ** 2)
    logs: Float64Array = np.log(weights / weights.sum())[:, None]
    return logs


RATES_OF_TILTS = np.expm1(TILTS)[:, None]
TILT_WEIGHTS = _spread(TILTS, 0.3)
RATE_WEIGHTS = _spread(RATES, 0.3)
HALF = float(np.log(0.5))


class Interval(NamedTuple):
    """Ends of intervals, one entry per cell."""

    low: Float64Array
    high: Float64Array


class LogWealth(NamedTuple):
    """Logarithms of e-values, one entry per cell: for a bias above the tolerance, and for one below minus that."""

    too_high: Float64Array
    too_low: Float64Array


def forecast_bins(p: Float64Array) -> IntArray:
    """Which of the 26 bins each forecast belongs to; `CENTERS` are their centers.

    Examples
    --------
    >>> forecast_bins(np.array([0.0, 0.001, 0.01, 0.5, 1.0]))
    array([ 0,  0,  3, 13, 25])
    """
    return np.searchsorted(EDGES, p, side="right").astype(np.int64)


def cell_bias(
    count: Float64Array, ones: Float64Array, forecasts: Float64Array, delta: Float64Array | float
) -> Interval:
    """F1: the interval of the bias of each cell, from n, Y and P.

    Guarantee: for each cell, with probability at least 1 - delta, the bias lies in the interval at all times at once.
    Outcomes anywhere in [0, 1] are allowed, though binary ones are what it is narrow for. An empty cell has [-1, 1].

    Parameters
    ----------
    count, ones, forecasts : array, shape (cells,)
        n, Y and P.
    delta : float or array
        Error rate, of all cells or of each.

    Notes
    -----
    At delta = 0.05 / 1,000 half-widths are 1.15 to 1.27 times those of Clopper and Pearson from 30 to 20,000 rows, and
    those hold for one look at independent rows only. Cost: 100,000 cells take about a second.

    Examples
    --------
    >>> found = cell_bias(np.array([2000.0]), np.array([500.0]), np.array([620.0]), 0.05)
    >>> found.low.round(3), found.high.round(3)
    (array([0.027]), array([0.091]))
    """
    log_level = np.broadcast_to(np.log(2.0) - np.log(delta), count.shape)
    lower = _in_parts(_cell_lower, log_level, count, ones, forecasts)
    upper = _in_parts(_cell_lower, log_level, count, count - ones, count - forecasts)
    return Interval(np.maximum(lower, -1.0), np.minimum(-upper, 1.0))


def cell_evidence(
    count: Float64Array, ones: Float64Array, forecasts: Float64Array, tolerance: float = 0.0
) -> LogWealth:
    """The e-values behind F1: how much each cell speaks for a bias above `tolerance`, and for one below minus that.

    Guarantee: wherever the bias is at most `tolerance`, exp(too_high) is at most a nonnegative martingale that starts
    at 1; likewise the other side. The interval of `cell_bias` leaves out 0 exactly where the larger of the two, at
    tolerance 0, is above log(2 / delta).

    Examples
    --------
    >>> cell_evidence(np.array([2000.0]), np.array([500.0]), np.array([620.0])).too_high.round(1)
    array([15.1])
    """

    def side(n: Float64Array, Y: Float64Array, P: Float64Array) -> Float64Array:
        gains, shifts = _cell_bets(n, Y, P)
        return log_wealth(n, gains, RATES_OF_TILTS, shifts, TILT_WEIGHTS, np.full(n.shape, tolerance))

    return LogWealth(_in_parts(side, count, ones, forecasts), _in_parts(side, count, count - ones, count - forecasts))


def group_bias(
    counts: Float64Array, ones: Float64Array, forecasts: Float64Array, delta: Float64Array | float
) -> Interval:
    """F2: the interval of the bias of groups over all their rows, where forecasts differ from row to row.

    Guarantee: that of `cell_bias`, which is valid here too but pays for the variance of y, and this one only for what
    the forecasts leave of it. Half of the stake is bet as in `cell_bias`, for groups of rare events.

    Parameters
    ----------
    counts, ones : array, shape (26, groups)
        Rows and ones of each group in each of the bins of `forecast_bins`.
    forecasts : array, shape (groups,)
        P, over all bins.
    delta : float or array, shape (groups,)
        Error rate.

    Examples
    --------
    >>> p = np.tile([0.05, 0.95], 1000)
    >>> y = np.tile([0.0, 1.0], 1000)
    >>> bins = forecast_bins(p)
    >>> counts, ones = (np.bincount(bins, weights, 26)[:, None].astype(float) for weights in (None, y))
    >>> found = group_bias(counts, ones, np.array([p.sum()]), 0.05)
    >>> found.low.round(3), found.high.round(3)
    (array([-0.005]), array([0.005]))
    """
    n = counts.sum(axis=0)
    log_level = np.broadcast_to(np.log(2.0) - np.log(delta), n.shape)
    lower = _in_parts(_group_lower, log_level, counts, ones, forecasts)
    upper = _in_parts(_group_lower, log_level, counts[::-1], (counts - ones)[::-1], n - forecasts)
    return Interval(np.maximum(lower, -1.0), np.minimum(-upper, 1.0))


def group_evidence(
    counts: Float64Array, ones: Float64Array, forecasts: Float64Array, tolerance: float = 0.0
) -> LogWealth:
    """The e-values behind F2; see `cell_evidence`."""

    def side(k: Float64Array, Y: Float64Array, P: Float64Array) -> Float64Array:
        n, gains, rates, shifts, weights = _group_bets(k, Y, P)
        return log_wealth(n, gains, rates, shifts, weights, np.full(n.shape, tolerance))

    n = counts.sum(axis=0)
    return LogWealth(
        _in_parts(side, counts, ones, forecasts), _in_parts(side, counts[::-1], (counts - ones)[::-1], n - forecasts)
    )


def independent_bias(count: Float64Array, ones: Float64Array, forecasts: Float64Array, delta: float) -> Interval:
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
    empty = count <= 0
    return Interval(np.where(empty, -1.0, np.maximum(low, -1.0)), np.where(empty, 1.0, np.minimum(high, 1.0)))


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


def _cell_bets(n: Float64Array, Y: Float64Array, P: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Gains and shifts of bets that the bias is large: on 1 - y, whose average mean is the bias + 1 - P / n."""
    return TILTS[:, None] * (n - Y), (1.0 - P / np.maximum(n, 1.0))[None]


def _cell_lower(log_level: Float64Array, n: Float64Array, Y: Float64Array, P: Float64Array) -> Float64Array:
    gains, shifts = _cell_bets(n, Y, P)
    return smallest_mean(n, gains, RATES_OF_TILTS, shifts, TILT_WEIGHTS, log_level)


def _group_bets(
    counts: Float64Array, ones: Float64Array, P: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Bets that the bias is large: half on 1 - y, half on c - y, whose average mean is the bias + sum (c - p) / n."""
    n, Y = counts.sum(axis=0), ones.sum(axis=0)
    gains, shifts = _cell_bets(n, Y, P)
    lost, won = np.log1p(RATES[:, None] * (CENTERS - 1.0)), np.log1p(RATES[:, None] * CENTERS)
    centered = lost @ ones + won @ (counts - ones)
    offset = (CENTERS @ counts - P) / np.maximum(n, 1.0)
    return (
        n,
        np.concatenate([gains, centered]),
        np.concatenate([RATES_OF_TILTS, RATES[:, None]]),
        np.concatenate([np.broadcast_to(shifts, gains.shape), np.broadcast_to(offset, centered.shape)]),
        HALF + np.concatenate([TILT_WEIGHTS, RATE_WEIGHTS]),
    )


def _group_lower(log_level: Float64Array, counts: Float64Array, ones: Float64Array, P: Float64Array) -> Float64Array:
    n, gains, rates, shifts, weights = _group_bets(counts, ones, P)
    return smallest_mean(n, gains, rates, shifts, weights, log_level)


def _in_parts(solve: Callable[..., Float64Array], *arrays: Float64Array) -> Float64Array:
    """`solve` applied to some thousand cells (the last axis) at a time."""
    n_cells = arrays[0].shape[-1]
    parts = [slice(start, start + AT_ONCE) for start in range(0, n_cells, AT_ONCE)]
    return np.concatenate([solve(*(array[..., part] for array in arrays)) for part in parts] or [np.zeros(0)])
