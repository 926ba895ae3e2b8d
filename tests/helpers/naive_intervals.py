"""The intervals of docs/audits.md with loops and a root finder, and streams by adversaries who know them."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize, stats

from swapcal.audits.intervals import RATES, TILTS
from swapcal.typing import Float64Array


def weights_of(sizes: Sequence[float]) -> list[float]:
    raw = [1 / (1 + (math.log2(size / 0.3) / 3) ** 2) for size in sizes]
    return [one / sum(raw) for one in raw]


def wealth_on_ones(y: Sequence[float], average: float) -> float:
    """Log wealth, row by row: bets on y_t at every tilt, over what they would win if every pi_t were `average`."""
    logs = []
    for theta, weight in zip(TILTS.tolist(), weights_of(TILTS.tolist()), strict=True):
        rate = math.expm1(theta)
        log = sum(math.log1p(rate * one) - math.log1p(rate * average) for one in y)
        logs.append(math.log(weight) + log)
    return float(np.logaddexp.reduce(logs))


def wealth_on_centers(y: Sequence[float], c: Sequence[float], average: float) -> float:
    """Log wealth, row by row: bets on c_t - y_t, whose average mean is said to be `average`."""
    logs = []
    for rate, weight in zip(RATES.tolist(), weights_of(RATES.tolist()), strict=True):
        log = sum(math.log1p(rate * (a - b)) - math.log1p(rate * average) for a, b in zip(c, y, strict=True))
        logs.append(math.log(weight) + log)
    return float(np.logaddexp.reduce(logs))


def share_lower(n: int, ones: int, delta: float) -> float:
    """L(n, Y): the average of the pi_t at which the wealth is 2 / delta."""

    def excess(m: float) -> float:
        logs = [
            math.log(w) + theta * ones - n * math.log1p(m * math.expm1(theta))
            for theta, w in zip(TILTS.tolist(), weights_of(TILTS.tolist()), strict=True)
        ]
        return float(np.logaddexp.reduce(logs)) - math.log(2 / delta)

    return 0.0 if excess(0.0) <= 0 else float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-15))


def group_lower(y: Sequence[float], p: Sequence[float], c: Sequence[float], delta: float) -> float:
    """The smallest bias that the bets on 1 - y and on c - y leave."""
    n = len(y)
    mean_p, mean_c = sum(p) / n, sum(c) / n

    def excess(b: float) -> float:
        ones = wealth_on_ones([1 - one for one in y], b + 1 - mean_p)
        centers = wealth_on_centers(y, c, b + mean_c - mean_p)
        return float(np.logaddexp(ones, centers)) - math.log(4 / delta)

    lowest = max(mean_p - 1, mean_p - mean_c - 1) + 1e-9
    return lowest if excess(lowest) <= 0 else float(optimize.brentq(excess, lowest, mean_p + 1, xtol=1e-13))


def clopper_pearson(n: float, ones: float, delta: float) -> tuple[float, float]:
    low = stats.beta.ppf(delta / 2, ones, n - ones + 1) if ones else 0.0
    high = stats.beta.isf(delta / 2, ones + 1, n - ones) if ones < n else 1.0
    return float(low), float(high)


Adversary = Callable[[np.random.Generator, Float64Array, Float64Array, int], Float64Array]
"""From random numbers, sums of V - E V so far, sums of pi so far and the row's number: the next pi of every stream."""


def steady(rng: np.random.Generator, deviation: Float64Array, _: Float64Array, t: int) -> Float64Array:
    return np.full(len(deviation), 0.3)


def drifting(rng: np.random.Generator, deviation: Float64Array, _: Float64Array, t: int) -> Float64Array:
    return np.full(len(deviation), 0.5 + 0.45 * math.sin(t / 40))


def chasing(rng: np.random.Generator, deviation: Float64Array, _: Float64Array, t: int) -> Float64Array:
    """Most variance while it looks bad, none once it looks good."""
    return np.where(deviation > -1.0, 0.5, 0.999)


def freezing(rng: np.random.Generator, deviation: Float64Array, means: Float64Array, t: int) -> Float64Array:
    """Once the deviation is large, rows without variance that move the average mean away from where the bets were."""
    large = np.abs(deviation) > 1.8 * np.sqrt(t + 1.0)
    return np.where(large, (deviation > 0) * 1.0, 0.2)


def rare(rng: np.random.Generator, deviation: Float64Array, _: Float64Array, t: int) -> Float64Array:
    return np.where(rng.random(len(deviation)) < 0.5, 0.002, 0.03)


ADVERSARIES: list[Adversary] = [steady, drifting, chasing, freezing, rare]


def played(adversary: Adversary, n_streams: int, n_rows: int, seed: int) -> tuple[Float64Array, Float64Array]:
    """Outcomes and their conditional means, shape (rows, streams)."""
    rng = np.random.default_rng(seed)
    y, pi = np.zeros((n_rows, n_streams)), np.zeros((n_rows, n_streams))
    deviation, means = np.zeros(n_streams), np.zeros(n_streams)
    for t in range(n_rows):
        pi[t] = adversary(rng, deviation, means, t)
        y[t] = rng.random(n_streams) < pi[t]
        deviation += pi[t] - y[t]
        means += pi[t]
    return y, pi
