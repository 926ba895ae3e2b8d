"""The game behind three of the rivals: one quadratic error per function, weighed by multiplicative weights.

K(f) = sum over points k of R_{f,k}^2 / n_{f,k}, with R the sum of f(x) V(point, y) over the visits of a point. A visit
with g = f(x) v raises K(f) by at most (2 R g + g^2) / n. These bounds are the gains of the functions, chi_f grows
exponentially with them, and the forecast keeps the chi-weighted gain small whatever the label is: the term with g^2
falls like 1 / n, the rest is 2 v Phi_k with Phi_k = sum_f chi_f f(x) R_{f,k} / n_{f,k}, to which the two-point rule
applies (Lee, Noarov, Pai, Roth 2022, Online minimax multiobjective optimization).
"""

import math

import numpy as np

from swapcal import checked
from swapcal.roles import Elicitable, Row
from swapcal.typing import Float64Array

__all__ = ["Quadratics", "grid_points"]


def grid_points(property: Elicitable, horizon: int, bins: int | None) -> Float64Array:
    """Points 1/m, ..., 1 of the domain; m = ceil(sqrt(T)), and at most T/3 as the theorem asks, unless given."""
    n = max(1, min(math.ceil(math.sqrt(horizon)), horizon // 3)) if bins is None else checked.whole(bins, "bins", 1)
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
