"""The rule that half of the literature plays by: two neighbors where the evidence changes sign.

Evidence C_i of bin i says by how much forecasts there were too high (positive) or too low, weighted as a method likes.
If C changes sign between neighbors, forecasting the one with probability |C| of the other cancels the weighted error
for every label, up to the distance of the two forecasts. If it never does, the end of the scale can only heal.
"""

import math
from typing import NamedTuple

import numpy as np

from swapcal.engine.grid import Grid
from swapcal.engine.published import Plan
from swapcal.typing import Float64Array

__all__ = ["Change", "first_change", "play_borders", "play_points", "sinh_sums"]


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
