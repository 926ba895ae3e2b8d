"""Algorithms 1 and 2 of the paper read aloud: every point of the T-grid, every expert and every past round looked at.

The oracle of `swapcal.paper`. It shares the draw and the property's V with the package and nothing else.

Notation, the paper's: T rounds, N bins I_1, ..., I_N (numbered from 1 here too), sigma a sign, w the weights of the
experts, Phi_t on the points j / T, P_t as a dictionary from j to its probability, p~ the drawn point, q_{t,i,sigma} the
learners' answers. An expert is its tuple: (f, i, sigma) in Algorithm 1, (i, sigma) in Algorithm 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from naive_learners import Algorithm, Past
from naive_msmwc import NaiveMsMwC
from swapcal.engine.kernels import uniform
from swapcal.protocols import Elicitable

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
