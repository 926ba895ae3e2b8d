"""Claim 10: Corollary 3, for a class that is neither finite nor the Euclidean ball and has a known complexity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swapcal.learners import dumped, loaded
from swapcal.paper.algorithms import Algorithm2
from swapcal.properties import Mean
from swapcal.protocols import Row
from swapcal.sparse import read_row
from swapcal.typing import Float64Array, Spec
from swapcal_benchmarks.exponents import exponent
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.known_laws import binary_scene
from swapcal_benchmarks.paper.one_run import powers_of
from swapcal_benchmarks.paper.rates import claimed_exponent

__all__ = ["NORMS", "BallGame", "BallRun", "NormBall", "ball_games", "ball_rows", "ball_runs", "class_of", "swap_error"]

NORMS = (2.0, 3.0, 5.0, 9.0, 17.0)
"""Norms p of contexts; comp(F) = sqrt(p - 1) is 1, 1.4, 2, 2.8, 4."""

_N, _RATED, _GROWN = 64, 5.0, 1000


@dataclass(frozen=True, slots=True)
class NormBall:
    """All <theta, x> with ||theta||_q <= 1, for contexts with ||x||_p <= 1, where 1/p + 1/q = 1 and p >= 2.

    n times the sequential Rademacher complexity is at most sqrt((p - 1) n): for p >= 2 (Ball, Carlen and Lieb, 1994)

        (||S + x||^2 + ||S - x||^2) / 2 <= ||S||^2 + (p - 1) ||x||^2,

    so E ||sum eps_t x_t||^2 <= (p - 1) n for every tree of contexts. The learner of which Corollary 3 says that there
    is one: with S the sum of kappa x and c = (p - 1) t it answers (||S + x, c|| - ||S - x, c||) / 2 in round t, where
    ||S, c|| = sqrt(||S||_p^2 + c).

    Guarantee: Reg(n) <= sqrt(p - 1) (sqrt(n + 1) + sqrt(n) - 1), which is at most 2 sqrt((p - 1) n). A proof: ||S +
    kappa x, c|| - q kappa is convex in kappa, so at most its larger value at 1 and -1. Both are (||S + x, c|| + ||S -
    x, c||) / 2, at most ||S, c + (p - 1)|| by the inequality above. The potential ||S, (p - 1) t|| thus grows by at
    most q kappa + sqrt(p - 1) (sqrt(t + 1) - sqrt(t - 1)) in round t; at the end it is at least ||S||, the supremum.
    """

    n: int
    p: float

    @property
    def odd(self) -> bool:
        """With -kappa throughout, S is -S and the answer its negative."""
        return True

    def row(self, x: object) -> Row:
        """A vector, shrunk to p-norm 1 where it is longer."""
        row = read_row(x, self.n)
        length = self.length(row.values)
        return Row(row.indices, row.values / length) if length > 1.0 else row

    def length(self, x: Float64Array) -> float:
        """The p-norm."""
        return float(np.linalg.norm(x, self.p))

    def start(self) -> Float64Array:
        """No rounds, S = 0."""
        return np.zeros(1 + self.n)

    def predict(self, state: Float64Array, row: Row) -> float:
        """Half the difference of two lengths."""
        ahead, behind, c = state[1:].copy(), state[1:].copy(), (self.p - 1.0) * (state[0] + 1.0)
        ahead[row.indices] += row.values
        behind[row.indices] -= row.values
        return 0.5 * (math.hypot(self.length(ahead), math.sqrt(c)) - math.hypot(self.length(behind), math.sqrt(c)))

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """One more round, S + kappa x."""
        state[0] += 1.0
        state[1 + row.indices] += kappa * row.values

    def complexity(self, n_rounds: float) -> float:
        """sqrt((p - 1) n)."""
        return math.sqrt((self.p - 1.0) * n_rounds)

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """The guarantee."""
        n = np.asarray(n_rounds, dtype=np.float64)
        return np.asarray(math.sqrt(self.p - 1.0) * np.maximum(np.sqrt(n + 1.0) + np.sqrt(n) - 1.0, 0.0))

    def supremum(self, state: Float64Array) -> float:
        """The length of S."""
        return self.length(state[1:])

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "NormBall", "n": self.n, "p": self.p}

    dump, load = staticmethod(dumped), staticmethod(loaded)


def class_of(p: float) -> NormBall:
    """That of claim 10 for contexts of p-norm 1."""
    return NormBall(_N, p)


@dataclass(frozen=True, slots=True)
class BallGame:
    """Regret over 2 n R_seq at each look, against fair signs or against minus the sign of the answer."""

    p: float
    contrary: bool
    looks: tuple[int, ...]
    seed: int

    @property
    def cost(self) -> float:
        """Rounds."""
        return 0.1 * self.looks[-1]

    def __call__(self) -> list[float]:
        """Play the rounds of the longest look."""
        learner, rng = class_of(self.p), np.random.default_rng([self.seed, 10])
        state, gained, found = learner.start(), 0.0, list[float]()
        indices, scale = np.arange(_N), _N ** (-1.0 / self.p)
        for t in range(1, self.looks[-1] + 1):
            row = Row(indices, scale * rng.choice([-1.0, 1.0], _N))
            q, sign = learner.predict(state, row), float(rng.choice([-1.0, 1.0]))
            kappa = -float(np.sign(q)) if self.contrary and q != 0.0 else sign
            learner.update(state, row, kappa)
            gained += q * kappa
            if t in self.looks:
                found.append((learner.supremum(state) - gained) / (2.0 * learner.complexity(t)))
        return found


@dataclass(frozen=True, slots=True)
class BallRun:
    """SMCal_r of Algorithm 2 with a `NormBall`, on labels as in claim 1."""

    p: float
    n_rounds: int
    seed: int

    @property
    def cost(self) -> float:
        """As in `Run`."""
        return self.n_rounds * (1.0 + 0.15 * math.pow(self.n_rounds, 1.0 / 3.0))

    def __call__(self) -> dict[float, float]:
        """Play, and score."""
        stage, learner = binary_scene(self.n_rounds, n=_N, seed=self.seed), class_of(self.p)
        x = stage.x * _N ** (-1.0 / self.p)
        p = Algorithm2(Mean(), learner, horizon=self.n_rounds, seed=self.seed).run(x, stage.y)
        return {r: swap_error(learner, x, stage.y, p, r) for r in powers_of(2.0)}


def swap_error(learner: NormBall, x: Float64Array, y: Float64Array, p: Float64Array, r: float) -> float:
    """SMCal_r over the ball: for each value the length of the sum of x (p - y)."""
    cells = [p == value for value in np.unique(p)]
    return float(sum(c.sum() * (learner.length((p[c] - y[c]) @ x[c]) / c.sum()) ** r for c in cells))


def ball_games(looks: tuple[int, ...], n_seeds: int) -> list[BallGame]:
    """For each norm and kind of sequence."""
    return [BallGame(p, contrary, looks, seed) for p in NORMS for contrary in (False, True) for seed in range(n_seeds)]


def ball_runs(roots: Sequence[int], n_seeds: int) -> list[BallRun]:
    """T = n^3, n from `roots`, for one norm; and T = 1,000 for each norm."""
    sizes = [(_RATED, n**3) for n in roots] + [(p, _GROWN) for p in NORMS if (p, _GROWN) != (_RATED, 10**3)]
    sizes += [] if 10 in roots else [(_RATED, _GROWN)]
    return [BallRun(p, n_rounds, seed) for p, n_rounds in sizes for seed in range(n_seeds)]


def ball_rows(
    games: Sequence[BallGame],
    played: Sequence[list[float]],
    runs: Sequence[BallRun],
    errors: Sequence[dict[float, float]],
) -> list[Measurement]:
    """That there is such a learner, the rates, and how the error grows with comp(F)."""
    most = max(max(each) for each in played)
    rows = [
        Measurement(
            claim="10 Corollary 3: regret / (2 n R_seq)",
            setting=f"ball dual to the p-norm, p = {NORMS[0]:g} to {NORMS[-1]:g}, worst of {len(games)} games",
            paper="O(1)",
            paper_value=1.0,
            measured=most,
            holds=most <= 1.0,
            note="the learner that the corollary says exists, written down for balls of dual norms; "
            "at most 1 is proved",
        )
    ]
    found: dict[tuple[float, int], dict[int, dict[float, float]]] = {}
    for run, error in zip(runs, errors, strict=True):
        found.setdefault((run.p, run.n_rounds), {})[run.seed] = error
    horizons = sorted(n for p, n in found if p == _RATED)
    seeds = sorted(found[_RATED, horizons[0]])
    for r in powers_of(2.0):
        claim = claimed_exponent(r)
        table = np.array([[found[_RATED, n][seed][r] for n in horizons] for seed in seeds])
        fit = exponent(np.array(horizons, dtype=np.float64), table)
        rows.append(
            Measurement(
                claim="10 Corollary 3: rate of SMCal_r",
                setting=f"Alg. 2, p = {_RATED:g}, comp(F) = {math.sqrt(_RATED - 1.0):g}, mean, r = {r:g}",
                paper=f"{claim}",
                paper_value=float(claim),
                measured=fit.value,
                low=fit.low,
                high=fit.high,
                holds=fit.low <= float(claim),
            )
        )
    table = np.array([[found[p, _GROWN][seed][2.0] for p in NORMS] for seed in seeds])
    fit = exponent(np.sqrt(np.array(NORMS) - 1.0), table)
    rows.append(
        Measurement(
            claim="10 Corollary 3: SMCal_2 as a power of comp(F)",
            setting=f"Alg. 2, mean, comp(F) = 1 to {math.sqrt(NORMS[-1] - 1.0):g}, T = {_GROWN}",
            paper="<= 2",
            paper_value=2.0,
            measured=fit.value,
            low=fit.low,
            high=fit.high,
            holds=fit.low <= 2.0,
        )
    )
    return rows
