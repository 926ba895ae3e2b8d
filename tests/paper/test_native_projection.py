"""MsMwC's step: the compiled one has the bits of its Python twin, whose exponentials are those of the textbook."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmwc_games import ADVERSARIES, MAKERS, Adversary
from swapcal.engine import kernels
from swapcal.paper import projection
from swapcal.paper.projection import Step, kkt_residual, project
from swapcal.typing import Float64Array

native_only = pytest.mark.skipif(
    kernels.backend() == "python", reason="the compiled kernels are not in use, so there are no twins to compare"
)


def bits(step: Step) -> tuple[bytes, bytes, str, int]:
    return step.weights.tobytes(), step.log_weights.tobytes(), step.multiplier.hex(), step.iterations


def both(w: Float64Array, logs: Float64Array, b: Float64Array, rates: Float64Array, floor: float) -> tuple[Step, Step]:
    with kernels.using("python"):
        expected = project(w, logs, b, rates, floor)
    with kernels.using("native"):
        return project(w, logs, b, rates, floor), expected


@native_only
@settings(max_examples=300, deadline=None)
@given(
    n=st.sampled_from([1, 2, 3, 5, 8, 255, 256, 257, 513, 700]),
    seed=st.integers(0, 10**6),
    smallest=st.floats(-9.0, -0.9),
    largest=st.sampled_from([-1.8, -0.9, 0.5, 1.5]),
    share=st.sampled_from([0.0, 1e-7, 0.01, 0.5, 1.0]),
    zeros=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_step_has_the_bits_of_its_twin(
    n: int, seed: int, smallest: float, largest: float, share: float, zeros: float
) -> None:
    rng = np.random.default_rng(seed)
    w = np.exp(rng.uniform(-30.0, 0.0, n))
    w = share / n + (1.0 - share) * w / w.sum()
    b = rng.choice([1.0, -1.0, 0.5], n) * rng.uniform(0.0, 2.0, n) ** rng.integers(0, 2, n)
    b = np.where(rng.random(n) < zeros, -0.0 * b, b)
    rates = 10.0 ** rng.uniform(min(smallest, largest), largest, n)
    found, expected = both(w, np.log(w), b, rates, share / n)
    assert bits(found) == bits(expected)


@native_only
def test_weights_that_have_vanished_have_the_same_bits() -> None:
    logs = np.array([0.0, -1.0, -700.0, -744.9, -746.0, -5000.0])
    w = np.exp(logs) / np.exp(logs).sum()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        b, rates = rng.uniform(-1.0, 1.0, 6), rng.uniform(0.0, 30.0, 6)
        found, expected = both(w, logs - math.log(np.exp(logs).sum()), b, rates, 0.0)
        assert bits(found) == bits(expected)
        assert np.isfinite(found.log_weights).all()


@native_only
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.__name__)
def test_games_have_the_same_bits(kind: str, adversary: Adversary) -> None:
    played = []
    for backend in ("python", "native"):
        experts, rng = MAKERS[kind](6, 100), np.random.default_rng(3)
        with kernels.using(backend):
            for t in range(150):
                experts.update(adversary(t, 100, experts.weights, rng))
        played.append(experts.weights.tobytes())
    assert played[0] == played[1]


@native_only
def test_arrays_are_read_wherever_they_lie_and_left_alone() -> None:
    w, b, rates = np.array([0.5, 0.3, 0.2]), np.array([-1.0, 0.0, 1.0]), np.array([0.02, 0.01, 0.03])
    found, expected = both(w, np.log(w), b, rates, 0.01)
    apart = [np.repeat(array, 2)[::2] for array in (w, np.log(w), b, rates)]
    for array in apart:
        array.flags.writeable = False
    again, _ = both(apart[0], apart[1], apart[2], apart[3], 0.01)
    assert bits(again) == bits(found) == bits(expected)
    assert (w.tolist(), b.tolist(), rates.tolist()) == ([0.5, 0.3, 0.2], [-1.0, 0.0, 1.0], [0.02, 0.01, 0.03])
    found.weights[0] = 0.0


@native_only
def test_vectors_of_different_lengths_are_refused() -> None:
    w = np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="as long as each other"):
        kernels.native.msmwc_project(w, np.log(w), np.zeros(3), np.ones(2), 0.0)
    with pytest.raises(ValueError, match="as long as each other"):
        kernels.native.msmwc_project(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), 0.0)


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


def test_exponents_too_large_for_a_float_give_a_finite_step() -> None:
    w, rates = np.array([0.5, 0.5]), np.array([900.0, 1.0])
    step = project(w, np.log(w), np.array([1.0, -1.0]), rates, 0.0)
    assert np.isfinite(step.weights).all()
    assert kkt_residual(np.log(w), np.array([1.0, -1.0]), rates, 0.0, step) < 1e-9


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 511, 513, 1000, 4097])
def test_sums_leave_no_term_out_and_take_none_twice(n: int) -> None:
    # Whole numbers add up exactly, in whatever order.
    terms = np.random.default_rng(n).integers(-(10**9), 10**9, n)
    assert projection._total(terms.astype(np.float64)) == int(terms.sum())


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
