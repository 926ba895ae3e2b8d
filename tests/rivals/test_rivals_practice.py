"""Calibeating, an offline oracle, what practitioners use, and the limit: each what its name says."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from effort import some
from rival_games import N_GROUPS, N_ROUNDS, learned, stream
from swapcal.audits.scores import isotonic
from swapcal.engine.values import Grid
from swapcal.errors import InvalidInput
from swapcal.hypotheses import Finite
from swapcal.properties import Expectile, Mean, Moment, Probability, Quantile
from swapcal.rivals.conformal import AdaptiveConformal, GroupConformal
from swapcal.rivals.foster_hart2023 import FosterHart2023
from swapcal.rivals.ghuge2025 import Ghuge2025Oracle
from swapcal.rivals.practice import (
    Clairvoyant,
    LogisticRecalibration,
    RollingIsotonic,
    RollingProperty,
)
from swapcal.simulate.streams import drifting
from swapcal.typing import Float64Array


@pytest.mark.parametrize("n_rounds", [1000, 4000])
def test_clairvoyant_errs_as_the_rounded_truth(n_rounds: int) -> None:
    """Its error is that of the truth put on the grid, by the audit; and every forecast is half a bin off at most."""
    world = drifting(n_rounds, 1, 6)
    hypotheses = Finite(world.x.shape[1])
    truth = world.truth_expectile(0.7)
    target = Expectile(0.7)
    method = Clairvoyant(target, hypotheses, horizon=n_rounds)
    p = method.run(world.x, world.y, hints=truth)
    n = math.ceil(n_rounds ** (1 / 3) - 1e-9)
    rounded = np.minimum(np.floor(truth * n), n - 1) / n + 0.5 / n
    errors = [
        sc.swap_multicalibration_error(world.y, q, world.x, property=target, hypotheses=hypotheses, r=2.0)
        for q in (p, rounded)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert method.grid == Grid(0.0, 1.0, n)
    assert np.max(np.abs(p - truth)) <= 0.5 / n + 1e-12


def test_logistic_step_is_the_gradient_of_the_log_loss() -> None:
    rate, h = 0.3, 1e-6
    x, y, hints = stream(40)
    method = LogisticRecalibration(Mean(), Finite(N_GROUPS), horizon=40, rate=rate)
    method.run(x, y, hints)
    start = np.concatenate([[method.intercept, method.slope], method.weights])
    context, label, hint = np.array([1.0, 0.0, -0.5, 1.0]), 0.3, 0.8
    inputs = np.concatenate([[1.0, math.log(hint / (1.0 - hint))], context])

    def log_loss(parameters: Float64Array) -> float:
        chance = 1.0 / (1.0 + math.exp(-float(parameters @ inputs)))
        return -label * math.log(chance) - (1.0 - label) * math.log(1.0 - chance)

    slopes = np.array([(log_loss(start + h * e) - log_loss(start - h * e)) / (2.0 * h) for e in np.eye(len(start))])
    method.update(method.predict(context, hint=hint), label)
    after = np.concatenate([[method.intercept, method.slope], method.weights])
    np.testing.assert_allclose(after, start - rate * slopes, atol=1e-8)


@settings(max_examples=some(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=9))
def test_isotonic_is_the_max_min_of_averages(points: list[tuple[int, int]]) -> None:
    """The classical formula: at i the largest over starts of the smallest over ends of the weighted average."""
    y, w = np.array([float(v) for v, _ in points]), np.array([float(k) for _, k in points])
    n = len(y)
    brute = [
        max(min(float(np.average(y[s : e + 1], weights=w[s : e + 1])) for e in range(i, n)) for s in range(i + 1))
        for i in range(n)
    ]
    fitted = isotonic(y, w)
    np.testing.assert_allclose(fitted, brute, atol=1e-12)
    assert np.all(np.diff(fitted) >= 0.0)


def test_rolling_isotonic_is_the_fit_of_its_window() -> None:
    """Monotone in the hint, equal to brute force on the window's distinct hints, and refitted only when it is time."""
    rng = np.random.default_rng(0)
    window, every = 12, 5
    method = RollingIsotonic(Probability(), Finite(1), horizon=40, window=window, every=every)
    hints, y = rng.integers(0, 6, 40) / 5.0, rng.integers(0, 2, 40).astype(np.float64)
    row = method.hypotheses.row([1.0])
    for t in range(40):
        method.update(method.predict([1.0], hint=hints[t]), y[t])
        fitted_at = (t + 1) // every * every
        if not fitted_at:
            assert method.plan(row, 0.37).values == (0.37,)
            continue
        past = slice(max(fitted_at - window, 0), fitted_at)
        levels = np.unique(hints[past])
        sums = [y[past][hints[past] == b] for b in levels]
        n = len(levels)
        for i, b in enumerate(levels.tolist()):
            brute = max(min(float(np.concatenate(sums[s : e + 1]).mean()) for e in range(i, n)) for s in range(i + 1))
            assert method.plan(row, b).values[0] == pytest.approx(brute, abs=1e-12)
        curve = [method.plan(row, h).values[0] for h in np.linspace(0.0, 1.0, 30)]
        assert np.all(np.diff(curve) >= -1e-15)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.005, 0.05])
def test_conformal_coverage_of_all_rounds(level: float, rate: float) -> None:
    """Within (max(q, 1 - q) + rate) / (rate T) of the level at every time, though labels jump and drift."""
    n_rounds = 2500
    rng = np.random.default_rng(1)
    y = 0.05 + 0.9 * (np.linspace(0.0, 0.5, n_rounds) + 0.5 * rng.random(n_rounds))
    y[1000:1400] = 0.99 - 0.3 * rng.random(400)
    y[1400:1500] = 0.01 + 0.01 * rng.random(100)
    method = AdaptiveConformal(Quantile(level), Finite(1), horizon=n_rounds, rate=rate, window=100)
    p = method.run(np.ones((n_rounds, 1)), y, hints=rng.random(n_rounds) if level > 0.5 else None)
    t = np.arange(1, n_rounds + 1)
    gaps = np.abs(np.cumsum(y <= p) / t - level)
    assert np.all(gaps <= (max(level, 1.0 - level) + rate) / (rate * t) + 1e-12)
    assert method.level == pytest.approx(level - rate * float(np.sum((y <= p) - level)), abs=1e-9)


def test_conformal_threshold_is_a_quantile_of_residuals() -> None:
    rng = np.random.default_rng(2)
    n_rounds, window = 80, 30
    method = AdaptiveConformal(Quantile(0.7), Finite(1), horizon=n_rounds, window=window, rate=0.05)
    y, hints = rng.random(n_rounds), rng.uniform(0.3, 0.5, n_rounds)
    for t in range(n_rounds):
        residuals = np.sort((y - hints)[max(t - window, 0) : t])
        k = math.ceil(method.level * (len(residuals) + 1))
        expected = hints[t] + residuals[k - 1] if 1 <= k <= len(residuals) else float(k > 0)
        forecast = method.predict([1.0], hint=hints[t])
        assert float(forecast) == pytest.approx(min(max(expected, 0.0), 1.0))
        method.update(forecast, y[t])


def test_group_conformal_covers_every_group() -> None:
    """The bound of its docstring for each group, pathwise; offsets are the sums of errors; plain ACI fails there."""
    n_rounds, level, rate = 8000, 0.8, 0.02
    rng = np.random.default_rng(3)
    x = np.ones((n_rounds, 5))
    x[:, 1:] = rng.random((n_rounds, 4)) < (0.1, 0.3, 0.5, 0.5)
    x[:, 4] *= -0.5
    y = np.clip(0.2 + 0.3 * x[:, 1] - 0.15 * x[:, 2] + rng.uniform(0.0, 0.2 + 0.2 * x[:, 3]), 1e-6, 1.0)
    method = GroupConformal(Quantile(level), Finite(5), horizon=n_rounds, rate=rate)
    p = method.run(x, y)
    v = (y <= p) - level
    np.testing.assert_allclose(method.offsets, -rate * (x.T @ v), atol=1e-9)
    c = max(level, 1.0 - level)
    bound = math.sqrt(n_rounds * (2.0 * c / rate + c * c * 5.0))
    assert np.abs(x.T @ v).max() <= bound
    gaps = np.abs(x.T @ v) / np.abs(x).sum(axis=0)
    assert gaps.max() < 0.04
    before = learned(method)
    absent = method.predict(np.zeros(5), hint=0.3)
    method.update(absent, 0.9)
    assert float(absent) == 0.3
    assert learned(method) == before
    plain = AdaptiveConformal(Quantile(level), Finite(5), horizon=n_rounds).run(x, y)
    assert (np.abs(x.T @ ((y <= plain) - level)) / np.abs(x).sum(axis=0)).max() > 0.1


@pytest.mark.parametrize("target", [Mean(), Quantile(0.9), Expectile(0.8), Moment(2)], ids=repr)
def test_rolling_property_is_the_value_of_the_window(target: Any) -> None:
    window = 15
    x, y, _ = stream(120, seed=6)
    method = RollingProperty(target, Finite(N_GROUPS), horizon=120, window=window)
    for t in range(120):
        values = [
            target.value(y[:t][x[:t, j] != 0.0][-window:])
            for j in range(N_GROUPS)
            if x[t, j] != 0.0 and np.any(x[:t, j] != 0.0)
        ]
        if not values:
            values = [target.value(y[:t][-window:])] if t else [0.5]
        forecast = method.predict(x[t])
        assert float(forecast) == pytest.approx(float(np.mean(values)), abs=1e-12)
        method.update(forecast, y[t])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=60))
def test_calibeating_refinement_bound(rounds: list[tuple[int, float]]) -> None:
    """Brier <= refinement + sum_b (1 + ln n_b) / T, whatever labels and hints do."""
    levels, y = np.array([b for b, _ in rounds]), np.array([label for _, label in rounds])
    method = FosterHart2023(Mean(), Finite(1), horizon=len(y), levels=4, calibrated=False)
    forecasts = method.run(np.ones((len(y), 1)), y, hints=(levels + 0.5) / 4)
    refinement, price = 0.0, 0.0
    for b in set(levels.tolist()):
        same = y[levels == b]
        refinement += float(np.sum((same - same.mean()) ** 2))
        price += 1.0 + math.log(len(same))
    assert float(np.sum((forecasts - y) ** 2)) <= refinement + price + 1e-9


def test_calibeating_against_the_far_label() -> None:
    """Calibrated, without hints: the label far from the mean forecast leaves Cal_2 below T / N^2 + 2 N (1 + ln T)."""
    n_rounds = 3000
    method = FosterHart2023(Probability(), Finite(1), horizon=n_rounds, bins=14, seed=9)
    values, labels = np.empty(n_rounds), np.empty(n_rounds)
    two = 0
    for t in range(n_rounds):
        plan = method.plan(method.hypotheses.row([1.0]), None)
        labels[t] = float(np.dot(plan.values, plan.probabilities) < 0.5)
        if len(plan.values) == 2:
            level, i, j = plan.notes
            errors = method.sums[level] / np.maximum(method.counts[level], 1.0)
            assert abs(plan.probabilities[0] * errors[i] + plan.probabilities[1] * errors[j]) < 1e-12
            two += 1
        forecast = method.predict([1.0])
        values[t] = float(forecast)
        method.update(forecast, labels[t])
    calibration = sum(
        float(np.sum(v - labels[values == v])) ** 2 / float(np.sum(values == v)) for v in np.unique(values)
    )
    assert calibration <= n_rounds / 14**2 + 2 * 14 * (1 + math.log(n_rounds))
    assert two > n_rounds / 2


def test_no_label_exploits_the_chosen_signs() -> None:
    """sum_i theta_i P(i) (i/m - u) <= 1 / 2m for both labels, in each round."""
    method = Ghuge2025Oracle(Mean(), Finite(N_GROUPS), horizon=N_ROUNDS, seed=4)
    x, y, _ = stream()
    for t in range(N_ROUNDS):
        _, signs = method.evaluate(method.sums + method.perturbation())
        plan = method.plan(method.hypotheses.row(x[t]), None)
        for u in (0.0, 1.0):
            gain = sum(
                p * float(signs[i]) * (i / method.bins - u) for i, p in zip(plan.notes, plan.probabilities, strict=True)
            )
            assert gain <= 0.5 / method.bins + 1e-12
        method.update(method.predict(x[t]), y[t])


def test_rounds_that_are_refused() -> None:
    with pytest.raises(InvalidInput, match="groups only"):
        Ghuge2025Oracle(Mean(), Finite(2), horizon=10).predict([0.5, 0.0])
    with pytest.raises(InvalidInput, match="true conditional property"):
        Clairvoyant(Mean(), Finite(2), horizon=10).predict([1.0, 0.0])
