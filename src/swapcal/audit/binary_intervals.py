"""Intervals of the bias where V has two values: probabilities of events, and quantiles.

Notation: y_t in {0, 1}, forecasts p_t, V_t = p_t - y_t. A cell has n rows, Y = sum of y_t, P = sum of p_t. Its bias is
the average over its rows of E[V_t | everything before y_t] = p_t - pi_t: positive where forecasts were too high. For a
quantile of level q, let y_t = 1 where the outcome is above the forecast, and p_t = 1 - q: V_t is then p_t - y_t again.

Nothing is assumed of the rows: forecasts and membership in the cell may depend on all that came before, outcomes on
each other, and one may look as often as one likes. Proofs are in `docs/audits.md`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swapcal.audit.tilted_bets import log_wealth, smallest_mean
from swapcal.typing import Float64Array, IntArray

__all__ = [
    "CENTERS",
    "BiasInterval",
    "LogWealth",
    "cell_bias",
    "cell_evidence",
    "forecast_bins",
    "group_bias",
    "group_evidence",
    "possible",
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


class BiasInterval(NamedTuple):
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
) -> BiasInterval:
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
    return possible(lower, -upper, count, forecasts)


def cell_evidence(
    count: Float64Array, ones: Float64Array, forecasts: Float64Array, tolerance: Float64Array | float = 0.0
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

    def side(b: Float64Array, n: Float64Array, Y: Float64Array, P: Float64Array) -> Float64Array:
        gains, shifts = _cell_bets(n, Y, P)
        return log_wealth(n, gains, RATES_OF_TILTS, shifts, TILT_WEIGHTS, b)

    bias = np.broadcast_to(tolerance, count.shape)
    return LogWealth(
        _in_parts(side, bias, count, ones, forecasts), _in_parts(side, bias, count, count - ones, count - forecasts)
    )


def group_bias(
    counts: Float64Array, ones: Float64Array, forecasts: Float64Array, delta: Float64Array | float
) -> BiasInterval:
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
    return possible(lower, -upper, n, forecasts)


def group_evidence(
    counts: Float64Array, ones: Float64Array, forecasts: Float64Array, tolerance: Float64Array | float = 0.0
) -> LogWealth:
    """The e-values behind F2; see `cell_evidence`."""

    def side(b: Float64Array, k: Float64Array, Y: Float64Array, P: Float64Array) -> Float64Array:
        n, gains, rates, shifts, weights = _group_bets(k, Y, P)
        return log_wealth(n, gains, rates, shifts, weights, b)

    n = counts.sum(axis=0)
    bias = np.broadcast_to(tolerance, n.shape)
    return LogWealth(
        _in_parts(side, bias, counts, ones, forecasts),
        _in_parts(side, bias, counts[::-1], (counts - ones)[::-1], n - forecasts),
    )


def possible(low: Float64Array, high: Float64Array, count: Float64Array, forecasts: Float64Array) -> BiasInterval:
    """Intervals cut to what a bias can be: from P / n - 1, all outcomes 1, to P / n; [-1, 1] without rows."""
    mean = forecasts / np.maximum(count, 1.0)
    some = count > 0
    return BiasInterval(np.where(some, np.maximum(low, mean - 1.0), -1.0), np.where(some, np.minimum(high, mean), 1.0))


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
