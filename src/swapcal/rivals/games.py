"""The rule that half of the literature plays by: two neighbors where the evidence changes sign.

Evidence C_i of bin i says by how much forecasts there were too high (positive) or too low, weighted as a method likes.
If C changes sign between neighbors, forecasting the one with probability |C| of the other cancels the weighted error
for every label, up to the distance of the two forecasts. If it never does, the end of the scale can only heal.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swapcal import inputs
from swapcal.engine.values import Grid
from swapcal.paper.grid import two_points
from swapcal.paper.method import Plan
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array, IntArray

# --------
# How the users of MsMwC find a forecast that no label can exploit: a simulated game, or its two-point solution.
#
# For weights w over the experts (f, i, sigma), Phi(p) is constant on each bin, and a distribution P of forecasts in
# [0, 1] is wanted with E Phi(p) (p - y) small for every y.


class Spots(NamedTuple):
    """Forecasts in [0, 1], their bins, and their probabilities."""

    points: list[float]
    bins: list[int]
    probabilities: list[float]


def two_spots(phi: Float64Array, horizon: int) -> Spots:
    """Two neighbors on the grid 0, 1/T, ..., 1 at the lowest change of sign: at most 1/T for every label."""
    n_bins = len(phi)
    support = two_points(phi, horizon)
    bins = [min(j * n_bins // horizon, n_bins - 1) for j, _ in support]
    return Spots([j / horizon for j, _ in support], bins, [probability for _, probability in support])


def simulated(phi: Float64Array, n_steps: int) -> Spots:
    r"""All points of a game of `n_steps` steps between a label that learns and a forecast that copies it.

    The label follows its gradient, y <- y - Phi(y) / (G sqrt(k)) in step k, cut to [0, 1], with G = max |Phi|; the
    forecast is the label's last value, so that the game is even in every step. As gradient ascent has a regret of at
    most 1.5 G sqrt(n), E Phi(p) (p - y) <= 1.5 G / sqrt(n) for every y when p is drawn from the points.

    Examples
    --------
    >>> phi = np.array([-0.2, -0.2, 0.1, 0.3])
    >>> spots = simulated(phi, 100)
    >>> payoffs = [np.mean(phi[spots.bins] * (np.array(spots.points) - y)) for y in (0.0, 1.0)]
    >>> len(spots.points), bool(max(payoffs) <= 1.5 * 0.3 / 10)
    (100, True)
    """
    n_bins = len(phi)
    largest = float(np.abs(phi).max())
    slopes = (phi / largest).tolist() if largest > 0.0 else [0.0] * n_bins
    points, bins, point, last = [], [], 0.5, n_bins - 1
    for step in (1.0 / np.sqrt(np.arange(1, n_steps + 1))).tolist():
        i = int(point * n_bins) if point < 1.0 else last
        points.append(point)
        bins.append(i)
        point -= slopes[i] * step
        # min and max would take half of the game's time.
        if point < 0.0:
            point = 0.0
        elif point > 1.0:
            point = 1.0
    return Spots(points, bins, [1.0 / n_steps] * n_steps)


# --------
# The game behind three of the rivals: one quadratic error per function, weighed by multiplicative weights.
#
# K(f) = sum over points k of R_{f,k}^2 / n_{f,k}, with R the sum of f(x) V(point, y) over the visits of a point. A
# visit
# with g = f(x) v raises K(f) by at most (2 R g + g^2) / n. These bounds are the gains of the functions, chi_f grows
# exponentially with them, and the forecast keeps the chi-weighted gain small whatever the label is: the term with g^2
# falls like 1 / n, the rest is 2 v Phi_k with Phi_k = sum_f chi_f f(x) R_{f,k} / n_{f,k}, to which the two-point rule
# applies (Lee, Noarov, Pai, Roth 2022, Online minimax multiobjective optimization).


def grid_points(property: Elicitable, horizon: int, bins: int | None) -> Float64Array:
    """Points 1/m, ..., 1 of the domain; m = ceil(sqrt(T)), and at most T/3 as the theorem asks, unless given."""
    n = max(1, min(math.ceil(math.sqrt(horizon)), horizon // 3)) if bins is None else inputs.integer(bins, "bins", 1)
    return np.linspace(*property.domain, n + 1)[1:]


class Quadratics:
    """Sums, counts and weights of all functions.

    Parameters
    ----------
    n_functions, n_points : int
        Sizes of the class and of the grid.
    horizon : int
        T, for the rate.
    bound : float
        C with |V| <= C; gains are at most 3 C^2.
    own_counts : bool
        Whether n counts the visits with f(x) not 0, for each function, or all visits of the point.
    """

    def __init__(self, n_functions: int, n_points: int, *, horizon: int, bound: float, own_counts: bool) -> None:
        self.own_counts = own_counts
        self.rate = math.sqrt(math.log(n_functions) / (4.0 * horizon)) / (3.0 * bound**2)
        self.sums = np.zeros((n_functions, n_points))
        self.counts = np.zeros((n_functions if own_counts else 1, n_points))
        self.logs = np.zeros(n_functions)

    def evidence(self, row: Row) -> Float64Array:
        """Phi for every point, up to a factor that does not depend on the point."""
        chi = np.exp(self.logs[row.indices] - self.logs.max())
        counts = self.counts[row.indices] if self.own_counts else self.counts
        return np.asarray((chi * row.values) @ (self.sums[row.indices] / np.maximum(counts, 1.0)))

    def record(self, row: Row, point: int, v: float) -> None:
        """A visit of a point, with identification v there."""
        gains, where = row.values * v, row.indices
        sums = self.sums[where, point]
        counts = self.counts[where, point] if self.own_counts else self.counts[0, point]
        self.logs[where] += self.rate * (2.0 * sums * gains + gains * gains) / np.maximum(counts, 1.0)
        self.sums[where, point] = sums + gains
        if self.own_counts:
            self.counts[where, point] += 1.0
        else:
            self.counts[0, point] += 1.0

    def errors(self) -> Float64Array:
        """K(f) for every function."""
        return np.asarray((self.sums**2 / np.maximum(self.counts, 1.0)).sum(axis=1))


# --------
# What the oracle-efficient methods of Garg et al. share: copies of a regression, rounded, and their chain's cycle.


def cycle(successors: Sequence[int], start: int) -> tuple[int, ...]:
    """The cycle into which `start` runs when every state i is followed by `successors[i]`.

    The uniform distribution on it is stationary for the chain whose row i is a point mass at `successors[i]`; O(m).

    Examples
    --------
    >>> cycle([1, 2, 1, 0], 3)
    (1, 2)
    """
    seen: dict[int, int] = {}
    state = start
    while state not in seen:
        seen[state] = len(seen)
        state = successors[state]
    return tuple(seen)[seen[state] :]


def rounded(forecasts: Float64Array, n_bins: int) -> list[int]:
    """The bin of each copy's forecast, given in widths of the domain: row i of the chain is a point mass there."""
    chosen: list[int] = np.clip(forecasts * n_bins, 0, n_bins - 1).astype(np.int64).tolist()
    return chosen


def play_cycle(successors: Sequence[int], grid: Grid) -> Plan:
    """The uniform distribution on the cycle reached from the middle; the notes are its states."""
    states = cycle(successors, grid.n // 2)
    values = tuple(grid.midpoint(i) for i in states)
    return Plan(values, (1.0 / len(states),) * len(states), states)


def affine(row: Row, n: int) -> tuple[IntArray, Float64Array]:
    """The context of length `n` with a constant behind it."""
    return np.append(row.indices, n), np.append(row.values, 1.0)


class Change(NamedTuple):
    """Bins `lower` and `lower + 1`, and the probability of the first; -1 and n - 1 stand for the ends of the scale."""

    lower: int
    p_lower: float


def first_change(evidence: Float64Array, logs: Float64Array | None = None) -> Change:
    """The lowest pair of neighbors whose evidence does not have the same strict sign.

    Evidence is `evidence * exp(logs)`, so that it may exceed the range of floats. Two zeros give the lower bin for
    sure. Without a change, positive evidence leads to the low end and the rest to the high end.

    Examples
    --------
    >>> first_change(np.array([-3.0, -1.0, 2.0]))
    Change(lower=1, p_lower=0.6666666666666666)
    >>> first_change(np.array([-3.0, -1.0])), first_change(np.array([1.0, 2.0]))
    (Change(lower=1, p_lower=1.0), Change(lower=-1, p_lower=0.0))
    """
    signs = np.sign(evidence)
    changes = signs[:-1] * signs[1:] <= 0.0
    k = int(changes.argmax()) if len(changes) else 0
    if not len(changes) or not changes[k]:
        return Change(-1, 0.0) if evidence[0] > 0.0 else Change(len(evidence) - 1, 1.0)
    below, above = abs(float(evidence[k])), abs(float(evidence[k + 1]))
    if below == 0.0 or above == 0.0:
        return Change(k, 1.0 if below == 0.0 else 0.0)
    ratio = below / above
    if logs is not None:
        gap = math.log(ratio) + float(logs[k] - logs[k + 1])
        ratio = math.exp(min(gap, 700.0))
    return Change(k, 1.0 / (1.0 + ratio))


def sinh_sums(exponents: Float64Array, factors: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Column sums of factors * (exp(a) - exp(-a)), as numbers and the logarithms they are to be multiplied by.

    Examples
    --------
    >>> numbers, logs = sinh_sums(np.array([[1000.0, 0.0]]), np.array([[0.5, 0.5]]))
    >>> numbers, logs
    (array([0.5, 0. ]), array([1000.,    0.]))
    """
    logs: Float64Array = np.abs(exponents).max(axis=0, initial=0.0)
    return (factors * (np.exp(exponents - logs) - np.exp(-exponents - logs))).sum(axis=0), logs


def play_points(points: Float64Array, change: Change) -> Plan:
    """Forecast the points themselves; the notes are the positions of the plan's values."""
    last = len(points) - 1
    if change.lower < 0 or change.p_lower == 0.0:
        return Plan((float(points[change.lower + 1]),), (1.0,), (change.lower + 1,))
    if change.lower == last or change.p_lower == 1.0:
        return Plan((float(points[change.lower]),), (1.0,), (change.lower,))
    k = change.lower
    return Plan((float(points[k]), float(points[k + 1])), (change.p_lower, 1.0 - change.p_lower), (k, k + 1))


def play_borders(grid: Grid, change: Change, fineness: int, middle: bool) -> Plan:
    """Forecast on both sides of the border between two bins, a `fineness`-th of a bin apart.

    The notes are pairs (bin, point): evidence is taken at the point, also where the bin's mid-point is forecast.
    """
    border = min(grid.border(change.lower + 1), grid.high)
    below = border if change.lower == grid.n - 1 else border - grid.width / fineness
    options = ((change.lower, below, change.p_lower), (change.lower + 1, border, 1.0 - change.p_lower))
    chosen = [option for option in options if option[2] > 0.0]
    values = tuple(grid.midpoint(i) if middle else point for i, point, _ in chosen)
    return Plan(values, tuple(p for *_, p in chosen), tuple((i, point) for i, point, _ in chosen))
