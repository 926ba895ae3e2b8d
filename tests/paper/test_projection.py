"""MsMwC's step: exact, quick, the minimizer that it says it is, with the exponentials of the textbook."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from naive_paper import kkt_residual, naive_projection
from swapcal.paper import projection
from swapcal.paper.projection import project
from swapcal.typing import Float64Array


@settings(max_examples=some(150), deadline=None)
@given(
    logits=st.lists(st.floats(-30.0, 0.0), min_size=1, max_size=8),
    seed=st.integers(0, 10**6),
    smallest=st.floats(-9.0, -0.9),
    share=st.sampled_from([0.0, 1e-7, 0.01, 0.5, 1.0]),
)
def test_the_projection_is_exact_and_quick(logits: list[float], seed: int, smallest: float, share: float) -> None:
    rng, n = np.random.default_rng(seed), len(logits)
    floor = share / n
    weights = np.exp(logits - np.max(logits))
    weights = floor + (1.0 - share) * weights / weights.sum()
    gradient = rng.uniform(-1.0, 2.0, n) * rng.integers(0, 2, n)
    rates = 10.0 ** rng.uniform(smallest, -0.9, n)
    step = project(weights, np.log(weights), gradient, rates, floor)
    assert kkt_residual(np.log(weights), gradient, rates, floor, step) < 1e-12
    assert step.iterations <= 12
    oracle = naive_projection(weights.tolist(), gradient.tolist(), rates.tolist(), floor)
    # The oracle's sum is good to 1e-16, its multiplier only to that over the rates; so allow for it.
    slope = float(rates @ weights)
    assert step.weights == pytest.approx(oracle, rel=1e-11 + 4e-16 * float(rates.max()) / slope, abs=0.0)


def test_weights_that_have_vanished_can_come_back() -> None:
    logs = np.array([0.0, -1.0, -700.0, -744.9, -746.0, -5000.0])
    w = np.exp(logs) / np.exp(logs).sum()
    logs = logs - math.log(np.exp(logs).sum())
    for seed in range(20):
        rng = np.random.default_rng(seed)
        b, rates = rng.uniform(-1.0, 1.0, 6), rng.uniform(0.0, 30.0, 6)
        step = project(w, logs, b, rates, 0.0)
        assert np.isfinite(step.log_weights).all()
        assert kkt_residual(logs, b, rates, 0.0, step) < 1e-9


def units(found: Float64Array, exact: list[float]) -> float:
    """The largest error in units of the last place."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(exact))))


def test_exponentials_are_exact_to_the_last_place() -> None:
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.uniform(-0.3466, 0.3466, 4000), [0.0, -0.0, 5e-324, -5e-324, 1e-17, -1e-9]])
    far = np.concatenate([rng.uniform(-40.0, 40.0, 4000), rng.uniform(-690.0, 690.0, 1000), near])
    deep = np.concatenate([rng.uniform(-746.0, 0.0, 4000), [-745.1, -745.2, -708.5, -1e6, -math.inf]])
    out, room = np.empty_like(near), np.empty_like(near)
    assert units(projection._expm1_near(near, out, room), [math.expm1(x) for x in near]) <= 1.0
    out, room = np.empty_like(far), np.empty_like(far)
    projection._expm1(far, out, room)
    assert units(out, [math.expm1(x) for x in far]) <= 2.0
    assert units(projection._exp(deep), [math.exp(x) for x in deep]) <= 1.0


def test_a_weight_about_to_meet_the_floor_is_not_overlooked() -> None:
    """Steps that end within a hair of the floor, on either side of it: the sum and the conditions still hold."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        w = np.array([0.6, 0.3, 0.1])
        b, rates = rng.uniform(-1.0, 1.0, 3), rng.uniform(0.01, 0.1, 3)
        free = project(w, np.log(w), b, rates, 0.0)
        floor = float(free.weights.min()) * (1.0 + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-16.0, -6.0))
        step = project(w, np.log(w), b, rates, floor)
        assert kkt_residual(np.log(w), b, rates, floor, step) < 1e-14
