"""The paper's Algorithms 1 to 4 and MsMwC read aloud: every point of the T-grid, every expert, every past round.

The oracle of `swapcal.paper` and `swapcal.learners`. It shares the draw and the property's V with the package and
nothing else: plain floats, no logarithms of weights, roots by bisection to the bit.

Notation, the paper's: T rounds, N bins I_1, ..., I_N (numbered from 1 here too), sigma a sign, w the weights of the
experts, Phi_t on the points j / T, P_t as a dictionary from j to its probability, p~ the drawn point, q_{t,i,sigma} the
learners' answers. An expert is its tuple: (f, i, sigma) in Algorithm 1, (i, sigma) in Algorithm 2. A past is a list of
rounds, each the list of x_j kappa for all functions j; theta or w is what a learner multiplies x with; S the sum of
what its answers were worth. Of MsMwC: v sums of squared gains, e rates, b corrected losses, lam the multiplier of
sum w = 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from naive import total
from swapcal.engine.kernels import uniform
from swapcal.paper.projection import Step
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

Past = list[list[float]]
Algorithm = Callable[[Past, int], list[float]]
"""From a past and the number of functions to the factor of each x_j in q."""


def multiplicative_weights(past: Past, n: int) -> list[float]:
    """Algorithm 3: w_{1,f} = 1/|F|, then w_{t+1,f} proportional to exp(eta_t times the cumulative correlation)."""
    t = len(past)
    if t == 0:
        return [1.0 / n] * n
    eta = math.sqrt(math.log(n) / t)
    raw = [math.exp(eta * total([gains[f] for gains in past])) for f in range(n)]
    return [w / total(raw) for w in raw]


def gradient_descent(past: Past, n: int) -> list[float]:
    """Algorithm 4 from theta_1 = 0: theta_{t+1} is the projection of theta_t + (2 / sqrt t) kappa_t x_t."""
    theta = [0.0] * n
    for t, gains in enumerate(past, start=1):
        theta = [a + 2.0 / math.sqrt(t) * g for a, g in zip(theta, gains, strict=True)]
        length = math.sqrt(total([a * a for a in theta]))
        theta = [a / max(length, 1.0) for a in theta]
    return theta


def fed(gains: list[list[float]], sigma: float) -> Past:
    """What the copy that learns sigma v has been taught, from the gains of each function."""
    return [[sigma * g for g in each] for each in zip(*gains, strict=True)]


def worth(algorithm: Algorithm, past: Past, n: int) -> float:
    """What a copy's answers were worth: sigma q v of a round is its factors on sigma x v."""
    answers = [total([a * g for a, g in zip(algorithm(past[:t], n), past[t], strict=True)]) for t in range(len(past))]
    return max(total(answers), 0.0)


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

    def __init__(self, d: int, T: int, cap: float = 1.0 / 64.0, c: float = 32.0) -> None:
        self.cap, self.c = cap, c
        self.floor = 1.0 / (d * T)
        self.log_term = max(math.log(d * T), math.log(2.0))
        # Uniform, pulled just enough to lie above the floor.
        self.w = [self.floor + (1.0 - d * self.floor) / d] * d
        self.v = [0.0] * d

    def update(self, gains: Sequence[float]) -> None:
        rates = [self.cap if v == 0.0 else min(math.sqrt(self.log_term / v), self.cap) for v in self.v]
        losses = [-x for x in gains]
        b = [loss + self.c * e * loss**2 for loss, e in zip(losses, rates, strict=True)]
        self.w = naive_projection(self.w, b, rates, self.floor)
        self.v = [v + loss**2 for v, loss in zip(self.v, losses, strict=True)]


class NaiveMaster:
    """Algorithm 2 of Chen, Luo and Wei with the expert-problem set of equation (3), hint zero."""

    def __init__(self, d: int, T: int) -> None:
        n_bases = max(1, math.ceil(math.log2(T)))
        self.rates = [1.0 / (32.0 * 2.0**k) for k in range(1, n_bases + 1)]
        total = sum(rate**2 for rate in self.rates)
        self.p = [rate**2 / total for rate in self.rates]
        self.bases = [[1.0 / d] * d for _ in self.rates]

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


SIGNS = (1, -1)


class NaiveExperts(Protocol):
    """ALG: weights out, gains in, both in the order in which the forecaster lists its experts."""

    @property
    def w(self) -> list[float]: ...

    def update(self, gains: Sequence[float]) -> None: ...


def bin_of(j: int, T: int, N: int) -> int:
    """The i with j / T in I_i = [(i - 1) / N, i / N), the last of them closed."""
    point = Fraction(j, T)
    for i in range(1, N):
        if Fraction(i - 1, N) <= point < Fraction(i, N):
            return i
    return N


def distribution(Phi: Sequence[float]) -> dict[int, float]:
    """P_t from the values of Phi_t at 0, 1/T, ..., 1, by looking at all of them.

    "Choose i such that": the lowest. 0/0: everything on the lower point, where the weighted gain is zero.
    """
    T = len(Phi) - 1
    if Phi[0] > 0.0:
        return {0: 1.0}
    if Phi[T] <= 0.0:
        return {T: 1.0}
    for i in range(T):
        if Phi[i] == 0.0 and Phi[i + 1] == 0.0:
            return {i: 1.0}
        if Phi[i] == 0.0 or Phi[i + 1] == 0.0 or (Phi[i] < 0.0) != (Phi[i + 1] < 0.0):  # the product may underflow
            size = abs(Phi[i]) + abs(Phi[i + 1])
            P = {i: abs(Phi[i + 1]) / size, i + 1: abs(Phi[i]) / size}
            return {j: p for j, p in P.items() if p > 0.0}
    raise AssertionError("Phi is not positive at 0 and positive at 1, yet has no sign change")


@dataclass(frozen=True)
class Played:
    """A round that waits for its outcome."""

    x: list[float]
    terms: dict[int, list[float]]
    """For each bin, the summands of Phi on it."""

    Phi: list[float]
    """At 0, 1/T, ..., 1."""

    P: dict[int, float]
    tilde: int
    """The j of the drawn point j / T."""

    i: int
    forecast: float
    answers: dict[tuple[int, int], float] = field(default_factory=dict)
    """q_{t,i,sigma}(x_t), in Algorithm 2."""


@dataclass
class Setting:
    """What both algorithms are given; the draws and the places of points in the property's units."""

    property: Elicitable
    n: int
    N: int
    T: int
    seed: int = 0
    expected: bool = True
    middles: bool = False

    def __post_init__(self) -> None:
        self.bins = [bin_of(j, self.T, self.N) for j in range(self.T + 1)]

    def at(self, share: Fraction) -> float:
        low, high = self.property.domain
        return low + (high - low) * float(share)

    def z(self, i: int) -> float:
        return self.at(Fraction(2 * i - 1, 2 * self.N) if self.middles else Fraction(i, self.N))

    def v(self, p: float, y: float) -> float:
        return float(self.property.identification(p, y))

    def v_tilde(self, played: Played, i: int, y: float) -> float:
        """E over p~ of 1{p~ in I_i} V(p~, y); with realized gains, its value at the point that was drawn."""
        P = played.P if self.expected else {played.tilde: 1.0}
        return math.fsum(p * self.v(self.at(Fraction(j, self.T)), y) for j, p in P.items() if self.bins[j] == i)

    def play(
        self, t: int, x: Sequence[float], terms: dict[int, list[float]], answers: dict[tuple[int, int], float]
    ) -> Played:
        # Exact sums: experts with equal weights and opposite signs cancel whatever stands between them.
        Phi = [math.fsum(terms[self.bins[j]]) for j in range(self.T + 1)]
        P = distribution(Phi)
        points = sorted(P)
        tilde = points[0] if uniform(self.seed, t) < P[points[0]] else points[-1]
        i = self.bins[tilde]
        return Played(list(x), terms, Phi, P, tilde, i, self.z(i), answers)

    def h(self, played: Played, y: float) -> float:
        """The quantity of Proposition 1 for one label: E over p~ of the weighted gain."""
        return math.fsum(p * played.Phi[j] * self.v(self.at(Fraction(j, self.T)), y) for j, p in played.P.items())


@dataclass
class NaiveAlgorithm1(Setting):
    """2 N |F| experts; `make` builds ALG for as many, MsMwC if it is left out."""

    make: Callable[[int, int], NaiveExperts] = NaiveMsMwC
    n_played: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.experts = [(f, i, s) for f in range(self.n) for i in range(1, self.N + 1) for s in SIGNS]
        self.alg = self.make(len(self.experts), self.T)

    def predict(self, x: Sequence[float]) -> Played:
        terms: dict[int, list[float]] = {i: [] for i in range(1, self.N + 1)}
        for w, (f, i, s) in zip(self.alg.w, self.experts, strict=True):
            terms[i].append(w * s * x[f])
        self.n_played += 1
        return self.play(self.n_played - 1, x, terms, {})

    def gains(self, played: Played, y: float) -> list[float]:
        V = {i: self.v_tilde(played, i, y) for i in range(1, self.N + 1)}
        return [s * played.x[f] * V[i] for f, i, s in self.experts]

    def update(self, played: Played, y: float) -> None:
        self.alg.update(self.gains(played, y))


@dataclass
class NaiveAlgorithm2(Setting):
    """2 N experts, 2 N learners; `learner` gives the factors of x in q from all that a learner was ever fed."""

    learner: Algorithm = field(kw_only=True)
    make: Callable[[int, int], NaiveExperts] = NaiveMsMwC
    n_played: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.experts = [(i, s) for i in range(1, self.N + 1) for s in SIGNS]
        self.fed: dict[tuple[int, int], Past] = {expert: [] for expert in self.experts}
        self.alg = self.make(len(self.experts), self.T)

    def q(self, expert: tuple[int, int], x: Sequence[float]) -> float:
        factors = self.learner(self.fed[expert], self.n)
        return math.fsum(a * b for a, b in zip(factors, x, strict=True))

    def predict(self, x: Sequence[float]) -> Played:
        answers = {expert: self.q(expert, x) for expert in self.experts}
        terms: dict[int, list[float]] = {i: [] for i in range(1, self.N + 1)}
        for w, (i, s) in zip(self.alg.w, self.experts, strict=True):
            terms[i].append(w * s * answers[i, s])
        self.n_played += 1
        return self.play(self.n_played - 1, x, terms, answers)

    def gains(self, played: Played, y: float) -> list[float]:
        V = {i: self.v_tilde(played, i, y) for i in range(1, self.N + 1)}
        return [s * played.answers[i, s] * V[i] for i, s in self.experts]

    def update(self, played: Played, y: float) -> None:
        self.alg.update(self.gains(played, y))
        for s in SIGNS:
            kappa = s * self.v(played.forecast, y)
            self.fed[played.i, s].append([kappa * each for each in played.x])


def kkt_residual(
    log_weights: Float64Array, gradient: Float64Array, rates: Float64Array, floor: float, step: Step
) -> float:
    """By how much `step`, taken from exp(log_weights), misses the conditions of a minimizer: the largest of the misses.

    They are ln(u_i / w_i) + eta_i (b_i + lam) = 0 for weights above the floor and >= 0 at it, sum u = 1, u >= floor.
    The derivative is multiplied by eta_i, so that a miss is a relative error of a weight.
    """
    derivative = step.log_weights - log_weights + rates * (gradient + step.multiplier)
    misses = np.where(step.weights > floor, np.abs(derivative), np.maximum(-derivative, 0.0))
    outside = max(floor - float(step.weights.min()), 0.0)
    return max(float(misses.max()), abs(float(step.weights.sum()) - 1.0), outside)
