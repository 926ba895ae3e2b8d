"""The parts of `swapcal bench paper`: verdicts follow the numbers, and what breaks a claim is seen to break it."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats

import swapcal as sc
from effort import ALL
from swapcal.errors import InvalidInput
from swapcal.learners import MultiplicativeWeights
from swapcal.paper.algorithms import Algorithm1
from swapcal.paper.method import Plan
from swapcal.protocols import Elicitable, Row
from swapcal.typing import Float64Array
from swapcal_benchmarks.exponents import exponent, exponents, student_interval
from swapcal_benchmarks.paper import (
    examples,
    inequalities,
    norm_balls,
    rates,
    regrets,
    slow_learners,
)
from swapcal_benchmarks.paper.cases import PaperCase, all_cases
from swapcal_benchmarks.paper.known_laws import narrow_scene, wide_scene


class Stubborn(Algorithm1):
    """Says the same thing whatever happens, as no algorithm with a guarantee would."""

    def plan(self, row: Row, hint: float | None) -> Plan:
        return Plan((self.grid.forecast(0),), (1.0,), ((0, 1.0),))


class WrongSide(Algorithm1):
    """Puts all mass where the weighted gain is largest."""

    def plan(self, row: Row, hint: float | None) -> Plan:
        phi = self.phi(row)
        j = self.grid.horizon if phi[-1] > 0.0 else 0
        return Plan((self.grid.forecast(self.grid.bin(j)),), (1.0,), ((j, 1.0),))


class Deaf:
    """A learner that answers 1 forever, and promises the regret of one that learns."""

    n, odd, dual = 4, False, "max"

    def start(self) -> Float64Array:
        return np.zeros(1)

    def predict(self, state: Float64Array, row: Row) -> float:
        return 1.0

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        state[0] += 1.0

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        return np.sqrt(n_rounds)

    def spec(self) -> dict[str, Any]:
        return {"kind": "Deaf"}


@cache
def broken(kind: type[Algorithm1] = Algorithm1) -> PaperCase:
    """The case of the mean, played by another algorithm."""

    def make(property: Elicitable, n: int, horizon: int, r: float, seed: int) -> Algorithm1:
        return kind(property, n, horizon=horizon, r=r, seed=seed)

    case = next(c for c in all_cases() if c.property_name.startswith("mean") and c.algorithm == "Alg. 1, finite")
    return replace(case, make=make)


def test_the_exponents_of_theorem_3() -> None:
    for r in (1.0, 1.25, 1.5, 2.0, 3.0, 4.0):
        assert slow_learners.exponent_with(r, 0.5) == rates.claimed_exponent(r) == slow_learners.exponent_with(r, 0.0)
        for alpha in (0.5, 0.6, 0.75, 0.9):
            # The two terms that grow with N = T^(1/(r+1)): rounding, and N bins with the regret of T/N rounds each.
            n_bins = 1.0 / (max(r, 2.0) + 1.0)
            regret = 1.0 + (n_bins + alpha * (1.0 - n_bins) - 1.0) * r
            expected = max(1.0 - n_bins * r, regret) if r >= 2.0 else max(1.0 - r / 3.0, regret)
            assert math.isclose(float(slow_learners.exponent_with(r, alpha)), expected)


def test_slow_learners_are_as_slow_as_they_declare() -> None:
    for alpha in slow_learners.ALPHAS:
        sc.checks.check_learner(slow_learners.SlowWeights(4, alpha), n_rounds=300 if ALL else 100)
        regrets_found, bounds = slow_learners.SlowGame(alpha, (100, 1600), 0)()
        assert all(a <= b for a, b in zip(regrets_found, bounds, strict=True))
        slope = math.log(regrets_found[1] / regrets_found[0]) / math.log(16.0)
        assert abs(slope - alpha) < 0.08
    # At one half it is Algorithm 3.
    usual, slow = MultiplicativeWeights(4), slow_learners.SlowWeights(4, 0.5)
    a, b, rng = usual.start(), slow.start(), np.random.default_rng(0)
    for _ in range(50):
        row, kappa = Row(np.arange(4), rng.uniform(-1.0, 1.0, 4)), float(rng.uniform(-1.0, 1.0))
        usual.update(a, row, kappa)
        slow.update(b, row, kappa)
        assert np.allclose(a, b, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("p", norm_balls.NORMS)
def test_of_a_ball_with_known_complexity_there_is_a_learner(p: float) -> None:
    """Its regret is proved, at most twice n R_seq; its supremum is the dual norm, by trying functions."""
    ball = norm_balls.NormBall(3, p)
    sc.checks.check_learner(ball, n_rounds=200 if ALL else 60)
    n = np.arange(1.0, 200.0)
    assert (ball.regret(n) <= 2.0 * np.sqrt((p - 1.0) * n)).all()
    assert all(max(norm_balls.BallGame(p, contrary, (50, 200), 1)()) <= 1.0 for contrary in (False, True))
    rng, q = np.random.default_rng(2), p / (p - 1.0)
    S = rng.uniform(-1.0, 1.0, 3)
    theta = rng.normal(size=(20_000, 3))
    theta /= np.linalg.norm(theta, q, axis=1, keepdims=True)
    found = float((theta @ S).max())
    assert 0.99 * ball.length(S) <= found <= ball.length(S) * (1.0 + 1e-12)
    x, y, forecasts = rng.uniform(-0.5, 0.5, (40, 3)), rng.random(40), rng.choice([0.2, 0.6], 40)
    cells = [forecasts == value for value in (0.2, 0.6)]
    sums = [((forecasts - y)[c] @ x[c], int(c.sum())) for c in cells]
    assert norm_balls.swap_error(ball, x, y, forecasts, 2.0) == pytest.approx(
        sum(ball.length(s) ** 2 / m for s, m in sums)
    )


def test_what_grows_too_fast_is_seen() -> None:
    runs = norm_balls.ball_runs((5, 8, 10), 2)
    errors = [{r: float(run.n_rounds) * (run.p - 1.0) ** 2 for r in (1.0, 1.5, 2.0)} for run in runs]
    rows = norm_balls.ball_rows([], [[2.0]], runs, errors)
    assert [row.holds for row in rows] == [False] * 5


def test_an_algorithm_that_does_not_learn_fails_the_rates_and_the_lemma() -> None:
    runs = rates.rate_runs([broken(Stubborn)], {2.0: (3, 5, 7)}, 3)
    outcomes = [run() for run in runs]
    found = rates.curves(runs, outcomes)
    assert [row.holds for row in rates.rate_rows(found)] == [False, False, False]
    constants = [row for row in inequalities.lemma_rows(runs, outcomes) if "growth" in row.claim]
    assert [row.holds for row in constants] == [False]


def test_a_steeper_power_within_the_logarithms_is_left_open() -> None:
    horizons = np.array([125.0, 512.0, 4096.0])
    curve = rates.ErrorCurve(broken(), 2.0, horizons, np.array([horizons**0.38, 1.1 * horizons**0.381]))
    assert 0.38 < rates.exponent_with_logarithms(curve) < 0.55
    assert rates.rate_rows([curve])[0].holds is None


def test_a_rule_on_the_wrong_side_fails_proposition_1() -> None:
    case = broken(WrongSide)
    watches = [inequalities.Watch(case, 400, seed) for seed in (0, 1)]
    assert [row.holds for row in inequalities.proposition_rows(watches, [w() for w in watches])] == [False]


def test_proposition_1_for_quantiles_holds_in_the_mean_and_not_for_the_worst_label() -> None:
    case = next(c for c in all_cases() if c.algorithm == "Alg. 2, linear" and c.property_name.startswith("quantile"))
    watches = [inequalities.Watch(case, 512, 0)]
    mean, worst = inequalities.proposition_rows(watches, [w() for w in watches])
    assert (mean.holds, worst.holds) == (True, False)
    assert mean.measured <= 1.0 < worst.measured


def test_a_learner_that_does_not_learn_fails_its_bound_and_its_rate() -> None:
    contests = [regrets.LearnerGame("deaf", Deaf(), "contrary", (16, 64, 256), seed) for seed in (0, 1)]
    rows = regrets.regret_rows(contests, [contest() for contest in contests])
    assert [row.holds for row in rows] == [False, False]


def test_swap_regret_demonstration_against_the_definition() -> None:
    for loss in examples.LOSSES.values():
        for y, level in ((0.5, 0.7), (0.25, 0.2)):
            below, above = examples.constant_sequences(loss, y, level, 50)
            assert below.p < y <= above.p
            assert min(below.swap_regret, above.swap_regret) == 0.0
            assert math.isclose(below.error, 50 * level**2)
            assert math.isclose(above.error, 50 * (1.0 - level) ** 2)


@pytest.mark.parametrize(
    "stage", [wide_scene(300, n=4, seed=1, level=0.7), narrow_scene(300, n=4, seed=1, level=0.7, density=4.0)]
)
def test_mean_identification_is_the_mean_over_many_draws(stage: Any) -> None:
    rng = np.random.default_rng(0)
    low, middle, high = stage.knots[17]
    u = rng.random(200_000)
    y = np.where(u < 0.7, low + u / 0.7 * (middle - low), middle + (u - 0.7) / 0.3 * (high - middle))
    for elicitable in (sc.Mean(), sc.Quantile(0.4), sc.Expectile(0.8)):
        for p in (0.0, 0.3, float(middle), 0.9):
            expected = float(np.mean(elicitable.identification(p, y)))
            assert abs(stage.mean_identification(elicitable, 17, p) - expected) < 0.005


def test_fitting() -> None:
    sizes = np.array([10.0, 100.0, 1000.0])
    assert np.allclose(exponents(sizes, np.array([3.0 * sizes**0.4, sizes**-1.0])), [0.4, -1.0])
    for n in (2, 5, 31, 60):
        values = np.random.default_rng(n).normal(size=n)
        low, high = scipy.stats.t.interval(0.95, n - 1, values.mean(), scipy.stats.sem(values))
        fit = student_interval(values)
        assert np.allclose([fit.low, fit.high], [low, high], rtol=2e-3, atol=1e-3)
    with pytest.raises(InvalidInput, match="positive"):
        exponent(sizes, np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="two sizes"):
        exponent(sizes[:1], np.ones((2, 1)))
    with pytest.raises(InvalidInput, match="finite"):
        student_interval(np.array([math.nan]))
