"""MsMwC and MsMwC-Master from the definitions: plain floats, no logarithms of weights, roots by bisection to the bit.

Notation: w weights, v sums of squared gains, e rates, b corrected losses, lam the multiplier of sum w = 1.
"""

import math
from collections.abc import Sequence

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["NaiveMaster", "NaiveMsMwC", "divergence", "naive_projection"]


def divergence(u: Float64Array, w: Float64Array, rates: Float64Array) -> float:
    """The sum of (u_i ln(u_i / w_i) - u_i + w_i) / e_i."""
    return float(((u * np.log(u / w) - u + w) / rates).sum())


def naive_projection(w: Sequence[float], b: Sequence[float], e: Sequence[float], floor: float) -> list[float]:
    """Minimize <u, b> + sum_i (u_i ln(u_i / w_i) - u_i + w_i) / e_i over u >= floor, sum u = 1.

    Setting the derivative to zero, u_i = w_i exp(-e_i (b_i + lam)) unless that is below the floor. The sum falls with
    lam, so halve until no number lies between the ends.
    """

    def at(lam: float) -> list[float]:
        return [max(floor, wi * math.exp(-ei * (bi + lam))) for wi, bi, ei in zip(w, b, e, strict=True)]

    low, high = -max(b) - 1.0, -min(b) + 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        if math.fsum(at(middle)) > 1.0:
            low = middle
        else:
            high = middle
    return at(low)


class NaiveMsMwC:
    """Theorem 2 of Chen, Luo and Wei with hint zero, one expert after the other."""

    def __init__(
        self, d: int, T: int, prior: Sequence[float] | None = None, cap: float = 1.0 / 64.0, c: float = 32.0
    ) -> None:
        prior = [1.0 / d] * d if prior is None else list(prior)
        self.cap, self.c = cap, c
        self.floor = 1.0 / (d * T)
        self.log_term = max(math.log(d * T), math.log(2.0))
        # The prior, pulled toward uniform just enough to lie above the floor.
        self.w = [self.floor + (1.0 - d * self.floor) * q for q in prior]
        self.v = [0.0] * d

    def update(self, gains: Sequence[float]) -> None:
        rates = [self.cap if v == 0.0 else min(math.sqrt(self.log_term / v), self.cap) for v in self.v]
        losses = [-x for x in gains]
        b = [loss + self.c * e * loss**2 for loss, e in zip(losses, rates, strict=True)]
        self.w = naive_projection(self.w, b, rates, self.floor)
        self.v = [v + loss**2 for v, loss in zip(self.v, losses, strict=True)]


class NaiveMaster:
    """Algorithm 2 of Chen, Luo and Wei with the expert-problem set of equation (3), hint zero."""

    def __init__(self, d: int, T: int, prior: Sequence[float] | None = None) -> None:
        n_bases = max(1, math.ceil(math.log2(T)))
        self.rates = [1.0 / (32.0 * 2.0**k) for k in range(1, n_bases + 1)]
        total = sum(rate**2 for rate in self.rates)
        self.p = [rate**2 / total for rate in self.rates]
        self.bases = [[1.0 / d] * d if prior is None else list(prior) for _ in self.rates]

    @property
    def w(self) -> list[float]:
        columns = zip(*self.bases, strict=True)
        return [sum(pk * wk for pk, wk in zip(self.p, column, strict=True)) for column in columns]

    def update(self, gains: Sequence[float]) -> None:
        losses = [-x for x in gains]
        means = [sum(wi * loss for wi, loss in zip(base, losses, strict=True)) for base in self.bases]
        b = [mean + 32.0 * e * mean**2 for mean, e in zip(means, self.rates, strict=True)]
        self.p = naive_projection(self.p, b, self.rates, 0.0)
        for k, e in enumerate(self.rates):
            rate = 2.0 * e
            # The base is MsMwC too, so the same projection; its equal rates need no closed form here.
            corrected = [loss + 32.0 * rate * loss**2 for loss in losses]
            self.bases[k] = naive_projection(self.bases[k], corrected, [rate] * len(losses), 0.0)
