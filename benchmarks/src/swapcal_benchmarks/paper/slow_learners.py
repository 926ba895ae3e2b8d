"""Claim 9: the paper's Theorem 3 for learners whose regret grows as n^alpha, alpha other than one half."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from swapcal.audits import swap_multicalibration_error
from swapcal.engine.kernels import safe_exp
from swapcal.learners import MultiplicativeWeights, dumped, loaded
from swapcal.paper.algorithms import Algorithm2
from swapcal.properties import Mean
from swapcal.protocols import Row
from swapcal.typing import Float64Array, Spec
from swapcal_benchmarks.exponents import exponent
from swapcal_benchmarks.measurement import Measurement
from swapcal_benchmarks.paper.known_laws import binary_scene
from swapcal_benchmarks.paper.one_run import powers_of

__all__ = ["ALPHAS", "SlowGame", "SlowRun", "SlowWeights", "exponent_with", "slow_games", "slow_rows", "slow_runs"]

ALPHAS = (0.75, 0.9)
_N_FUNCTIONS = 4


def exponent_with(r: float, alpha: float) -> Fraction:
    """The largest exponent of T in Theorem 3, for a learner with Reg(n) = O~(n^alpha).

    Examples
    --------
    >>> [str(exponent_with(r, 0.5)) for r in (1.0, 1.5, 2.0, 3.0)], str(exponent_with(2.0, 0.75))
    (['2/3', '1/2', '1/3', '1/4'], '2/3')
    """
    s, a = Fraction(r).limit_denominator(100), Fraction(alpha).limit_denominator(100)
    if s >= 2:
        return max(1 / (s + 1), 1 - s + s / (s + 1) + a * s * s / (s + 1))
    return max(1 - s / 3, 1 + 2 * s * (a - 1) / 3)


@dataclass(frozen=True, slots=True)
class SlowWeights:
    """Multiplicative weights that learn too slowly: the rate after t rounds is sqrt(ln n) t^-alpha, alpha >= 1/2.

    Guarantee: Reg(m) <= sqrt(ln n) (m^alpha + m^(1 - alpha) / (2 (1 - alpha)) + 1/2), by the proof in
    `MultiplicativeWeights`: Reg(m) <= ln n / b_m + sum_t b_t / 2 with b_t the rate after t - 1 rounds, b_1 = b_2, and
    the sum of t^-alpha up to m is at most m^(1 - alpha) / (1 - alpha). It is of the order m^alpha and no smaller: gains
    of one function that stay below m^alpha are hardly noticed.
    """

    n: int
    alpha: float

    @property
    def odd(self) -> bool:
        """False."""
        return False

    def start(self) -> Float64Array:
        """As `MultiplicativeWeights`."""
        return MultiplicativeWeights(self.n).start()

    def predict(self, state: Float64Array, row: Row) -> float:
        """As `MultiplicativeWeights`."""
        return MultiplicativeWeights(self.n).predict(state, row)

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        """Add the gains and renew all weights."""
        gains = state[1 : self.n + 1]
        state[0] += 1.0
        gains[row.indices] += row.values * kappa
        raw = safe_exp(math.sqrt(math.log(self.n)) * float(state[0]) ** -self.alpha * (gains - gains.max()))
        state[self.n + 1 :] = raw / raw.cumsum()[-1]

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        """The guarantee."""
        rest = 1.0 - self.alpha
        steps = np.asarray(n_rounds) ** self.alpha + np.asarray(n_rounds) ** rest / (2.0 * rest) + 0.5
        return np.asarray(math.sqrt(math.log(self.n)) * steps)

    def spec(self) -> Spec:
        """Plain data."""
        return {"kind": "SlowWeights", "n": self.n, "alpha": self.alpha}

    dump, load = staticmethod(dumped), staticmethod(loaded)


@dataclass(frozen=True, slots=True)
class SlowGame:
    """The learner's regret at each look where one function gains t^(alpha - 1) in round t, and the others nothing."""

    alpha: float
    looks: tuple[int, ...]
    seed: int

    @property
    def cost(self) -> float:
        """Rounds."""
        return 0.1 * self.looks[-1]

    def __call__(self) -> tuple[list[float], list[float]]:
        """Regrets, and their declared bounds."""
        learner = SlowWeights(_N_FUNCTIONS, self.alpha)
        rng, indices = np.random.default_rng([self.seed, 9]), np.arange(learner.n)
        state, sums, gained, regrets = learner.start(), np.zeros(learner.n), 0.0, list[float]()
        for t in range(1, self.looks[-1] + 1):
            row = Row(indices, rng.choice([-1.0, 1.0], learner.n))
            q, kappa = learner.predict(state, row), float(row.values[0]) * t ** (self.alpha - 1.0)
            learner.update(state, row, kappa)
            sums += row.values * kappa
            gained += q * kappa
            if t in self.looks:
                regrets.append(float(sums.max()) - gained)
        return regrets, learner.regret(np.array(self.looks, dtype=np.float64)).tolist()


@dataclass(frozen=True, slots=True)
class SlowRun:
    """SMCal_r of Algorithm 2 with `SlowWeights`, on labels as in claim 1."""

    alpha: float
    n_rounds: int
    seed: int

    @property
    def cost(self) -> float:
        """As in `Run`."""
        return self.n_rounds * (1.0 + 0.15 * math.pow(self.n_rounds, 1.0 / 3.0))

    def __call__(self) -> dict[float, float]:
        """Play, and score."""
        stage = binary_scene(self.n_rounds, n=_N_FUNCTIONS, seed=self.seed)
        method = Algorithm2(Mean(), SlowWeights(_N_FUNCTIONS, self.alpha), horizon=self.n_rounds, seed=self.seed)
        p = method.run(stage.x, stage.y)
        return {r: swap_multicalibration_error(stage.y, p, stage.x, r=r) for r in powers_of(2.0)}


def slow_games(looks: tuple[int, ...], n_seeds: int) -> list[SlowGame]:
    """One for each alpha and seed."""
    return [SlowGame(alpha, looks, seed) for alpha in ALPHAS for seed in range(n_seeds)]


def slow_runs(roots: Sequence[int], n_seeds: int) -> list[SlowRun]:
    """T = n^3, n from `roots`."""
    return [SlowRun(alpha, n**3, seed) for alpha in ALPHAS for n in roots for seed in range(n_seeds)]


def slow_rows(
    games: Sequence[SlowGame],
    played: Sequence[tuple[list[float], list[float]]],
    runs: Sequence[SlowRun],
    errors: Sequence[dict[float, float]],
) -> list[Measurement]:
    """That the learner is as slow as declared, and that the error keeps to what the theorem makes of it."""
    rows = []
    for alpha in ALPHAS:
        mine = [result for game, result in zip(games, played, strict=True) if game.alpha == alpha]
        looks = np.array(next(game.looks for game in games if game.alpha == alpha), dtype=np.float64)
        fit = exponent(looks, np.array([regrets for regrets, _ in mine]))
        share = max(a / b for regrets, bounds in mine for a, b in zip(regrets, bounds, strict=True))
        rows.append(
            Measurement(
                claim="9 slow learner's regret as a power of n",
                setting=f"alpha = {alpha:g}, n = {looks[0]:g} to {looks[-1]:g}",
                paper=f"{alpha:g}",
                paper_value=alpha,
                measured=fit.value,
                low=fit.low,
                high=fit.high,
                holds=share <= 1.0,
                note=f"multiplicative weights that learn too slowly; regret / declared bound is at most {share:.2f}",
            )
        )
    for alpha in ALPHAS:
        for r in powers_of(2.0):
            table: dict[int, dict[int, float]] = {}
            for run, found in zip(runs, errors, strict=True):
                if run.alpha == alpha:
                    table.setdefault(run.seed, {})[run.n_rounds] = found[r]
            horizons = np.array(list(next(iter(table.values()))), dtype=np.float64)
            fit = exponent(horizons, np.array([list(by_horizon.values()) for by_horizon in table.values()]))
            claim = exponent_with(r, alpha)
            rows.append(
                Measurement(
                    claim="9 Theorem 3: rate of SMCal_r, Reg(n) = n^alpha",
                    setting=f"Alg. 2, finite, mean, alpha = {alpha:g}, r = {r:g}",
                    paper=f"{claim}",
                    paper_value=float(claim),
                    measured=fit.value,
                    low=fit.low,
                    high=fit.high,
                    holds=fit.low <= float(claim),
                )
            )
    return rows
