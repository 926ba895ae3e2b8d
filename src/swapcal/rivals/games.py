"""What several rivals share: the games they play, each as the class of those who play it.

The rule that half of the literature plays by: two neighbors where the evidence changes sign. Evidence C_i of bin i says
by how much forecasts there were too high (positive) or too low, weighted as a method likes. If C changes sign between
neighbors, forecasting the one with probability |C| of the other cancels the weighted error for every label, up to the
distance of the two forecasts. If it never does, the end of the scale can only heal.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from swapcal import inputs
from swapcal.engine.values import Grid
from swapcal.paper.grid import two_points
from swapcal.paper.method import Plan
from swapcal.paper.msmwc import MsMwC
from swapcal.protocols import Row
from swapcal.rivals.card import BinnedRival
from swapcal.typing import Float64Array, IntArray


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


@dataclass(eq=False, repr=False, kw_only=True)
class BorderRival(BinnedRival):
    """Forecasts on both sides of the border between two bins, a `fineness`-th of a bin apart."""

    fineness: int = 1000
    forecasts: str = "point"

    def start(self) -> None:
        """Settle bins and grid."""
        super().start()
        self.fineness = inputs.integer(self.fineness, "fineness", 2)
        self.forecasts = inputs.one_of(self.forecasts, "forecasts", ("point", "middle"))
        self.grid = Grid(*self.property.domain, self.bins)

    def play_borders(self, evidence: Float64Array, logs: Float64Array) -> Plan:
        """Two points around a border.

        The notes are pairs (bin, point): evidence is taken at the point, also where the bin's mid-point is forecast.
        """
        grid, (lower, p_lower) = self.grid, first_change(evidence, logs)
        border = min(grid.border(lower + 1), grid.high)
        below = border if lower == grid.n - 1 else border - grid.width / self.fineness
        options = ((lower, below, p_lower), (lower + 1, border, 1.0 - p_lower))
        notes = tuple((i, point) for i, point, p in options if p > 0.0)
        values = tuple(grid.midpoint(i) if self.forecasts == "middle" else point for i, point in notes)
        return Plan(values, tuple(p for *_, p in options if p > 0.0), notes)


# --------
# How the users of MsMwC find a forecast that no label can exploit: for weights w over the experts (f, i, sigma), Phi(p)
# is constant on each bin, and two neighbors on the grid 0, 1/T, ..., 1 make E Phi(p) (p - y) at most 1/T for every y.
# The sources play a simulated game for it, of which this is the closed form in one dimension.


@dataclass(eq=False, repr=False, kw_only=True)
class ExpertsRival(BinnedRival):
    """MsMwC over experts for tests, bins and signs."""

    # Where in its bin a forecast may lie; None is the point itself.
    places: ClassVar[dict[str, float | None]] = {"point": None, "middle": 0.5}

    forecasts: str = "point"

    def start(self) -> None:
        """Settle the bins, at most T, and start the experts."""
        super().start()
        self.forecasts = inputs.one_of(self.forecasts, "forecasts", tuple(self.places))
        self.bins = min(self.bins, self.horizon)
        self.sums = np.zeros((self.bins, self.n_tests()))
        self.experts = MsMwC(2 * self.sums.size, horizon=self.horizon)

    def n_tests(self) -> int:
        """Experts a bin and sign."""
        return self.hypotheses.n

    def tests(self, row: Row) -> Row:
        """The values of the tests: of the functions."""
        return row

    def plan(self, row: Row, hint: float | None) -> Plan:
        """A distribution that no label can exploit; hints are not used."""
        indices, values = self.tests(row)
        plus, minus = self.experts.weights.reshape(2, *self.sums.shape)
        phi = np.asarray((plus - minus)[:, indices] @ values)
        support, inside = two_points(phi, self.horizon), self.places[self.forecasts]
        bins = [min(j * self.bins // self.horizon, self.bins - 1) for j, _ in support]
        points = [self._inside(j / self.horizon) for j, _ in support]
        played = points if inside is None else [self._inside((i + inside) / self.bins) for i in bins]
        return Plan(tuple(played), tuple(p for _, p in support), (bins, points))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Feed the experts their realized gains."""
        (indices, values), i = self.tests(row), plan.notes[0][drawn]
        gains = np.zeros((2, *self.sums.shape))
        gains[0, i, indices] = values * inputs.identified(self.property, plan.notes[1][drawn], y)
        gains[1] = -gains[0]
        self.experts.update(gains.ravel())
        self.sums += gains[0]

    def _inside(self, share: float) -> float:
        return min(self.scaled(share), self.property.domain[1])


# --------
# The game behind three of the rivals: one quadratic error per function, weighed by multiplicative weights.
#
# K(f) = sum over points k of R_{f,k}^2 / n_{f,k}, with R the sum of f(x) V(point, y) over the visits of a point. A
# visit with g = f(x) v raises K(f) by at most (2 R g + g^2) / n. These bounds are the gains of the functions, chi_f
# grows exponentially with them, and the forecast keeps the chi-weighted gain small whatever the label is: the term with
# g^2 falls like 1 / n, the rest is 2 v Phi_k with Phi_k = sum_f chi_f f(x) R_{f,k} / n_{f,k}, to which the two-point
# rule applies (Lee, Noarov, Pai, Roth 2022, Online minimax multiobjective optimization).


@dataclass(eq=False, repr=False, kw_only=True)
class QuadraticRival(BinnedRival):
    """Plays this game at the points 1/m, ..., 1 of the domain.

    own_counts: whether n counts the visits with f(x) not 0, for each function, or all visits of the point.
    """

    own_counts: ClassVar[bool] = True

    def start(self) -> None:
        """Settle the points, and start with nothing learned."""
        super().start()
        n = self.hypotheses.n
        self.points = np.linspace(*self.property.domain, self.bins + 1)[1:]
        self.rate = math.sqrt(math.log(n) / (4.0 * self.horizon)) / (3.0 * self.bound() ** 2)
        self.sums = np.zeros((n, self.bins))
        self.counts = np.zeros((n if self.own_counts else 1, self.bins))
        self.logs = np.zeros(n)

    def bound(self) -> float:
        """C with |V| <= C, so that gains are at most 3 C^2; this package scales V so that it is 1."""
        return 1.0

    def default_bins(self) -> int:
        """ceil(sqrt(T)), and at most T/3 as the theorem asks."""
        return max(1, min(math.ceil(math.sqrt(self.horizon)), self.horizon // 3))

    def evidence(self, row: Row) -> Float64Array:
        """Phi for every point, up to a factor that does not depend on the point."""
        chi = np.exp(self.logs[row.indices] - self.logs.max())
        counts = self.counts[row.indices] if self.own_counts else self.counts
        return np.asarray((chi * row.values) @ (self.sums[row.indices] / np.maximum(counts, 1.0)))

    def plan(self, row: Row, hint: float | None) -> Plan:
        """Neighboring points of the grid where the weighted evidence changes sign; hints are not used."""
        return play_points(self.points, first_change(self.evidence(row)))

    def learn(self, row: Row, plan: Plan, drawn: int, y: float) -> None:
        """Add the identification at the forecast to the sums, and the gains to the weights."""
        point, where = plan.notes[drawn], row.indices
        gains = row.values * inputs.identified(self.property, plan.values[drawn], y)
        counted: Any = where if self.own_counts else 0
        sums, counts = self.sums[where, point], self.counts[counted, point]
        self.logs[where] += self.rate * (2.0 * sums * gains + gains * gains) / np.maximum(counts, 1.0)
        self.sums[where, point] = sums + gains
        self.counts[counted, point] += 1.0

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


def affine(row: Row, n: int) -> tuple[IntArray, Float64Array]:
    """The context of length `n` with a constant behind it."""
    return np.append(row.indices, n), np.append(row.values, 1.0)


class CycleRival(BinnedRival):
    """A copy of a regression for each bin; `regressions` is what each would forecast, in widths of the domain."""

    def start(self) -> None:
        """Settle bins and grid."""
        super().start()
        self.grid = Grid(*self.property.domain, self.bins)

    @abstractmethod
    def regressions(self, row: Row) -> Float64Array:
        """What each copy would forecast, in widths of the domain; not clipped."""

    def successors(self, row: Row) -> list[int]:
        """The grid value to which each copy's forecast is rounded: row i of the chain is a point mass there."""
        bins: list[int] = np.clip(self.regressions(row) * self.bins, 0, self.bins - 1).astype(np.int64).tolist()
        return bins

    def plan(self, row: Row, hint: float | None) -> Plan:
        """The uniform distribution on the cycle reached from the middle. A hint is not used."""
        states = cycle(self.successors(row), self.bins // 2)
        values = tuple(self.grid.midpoint(i) for i in states)
        return Plan(values, (1.0 / len(states),) * len(states), states)
