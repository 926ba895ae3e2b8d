"""The audit against the paper's definitions, its own identities, and the promises of its intervals."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive_audit as naive
from effort import crossed, some
from streams import Stream, simulated
from swapcal.audits import (
    Audit,
    calibration_error,
    multicalibration_bounds,
    multicalibration_error,
    swap_multicalibration_error,
)
from swapcal.audits.cells import CURVATURES, TILTS, adaptive_radius, independent_radius
from swapcal.audits.linear import linear_bounds
from swapcal.hypotheses import Finite, Linear
from swapcal.properties import Expectile, Mean, Quantile
from swapcal.protocols import Elicitable

POWERS = (1.0, 1.5, 2.0, 3.0)

# Each V once more, as the paper writes it, so that the oracle shares no code with the package.
PROPERTIES: list[tuple[Elicitable, naive.Identification]] = [
    (Mean(), lambda p, y: p - y),
    (Quantile(0.9), lambda p, y: float(y <= p) - 0.9),
    (Expectile(0.7), lambda p, y: abs(float(y <= p) - 0.7) * (p - y)),
]
WITH_EACH_PROPERTY = pytest.mark.parametrize(("property", "v"), PROPERTIES, ids=["mean", "quantile", "expectile"])


@st.composite
def streams(draw: st.DrawFn, n: int | None = None) -> Stream:
    """Few distinct forecasts, so that cells fill; contexts with many zeros and both signs, of length at most 1."""
    n_rounds = draw(st.integers(1, 15))
    width = n or draw(st.integers(1, 4))
    grid = st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.0, 0.25, 0.5, 1.0])
    y = draw(st.lists(st.floats(0, 1), min_size=n_rounds, max_size=n_rounds))
    p = draw(st.lists(st.sampled_from([0.0, 0.2, 0.7, 1.0]), min_size=n_rounds, max_size=n_rounds))
    x = np.array(draw(st.lists(grid, min_size=n_rounds * width, max_size=n_rounds * width))).reshape(n_rounds, width)
    return np.array(y), np.array(p), x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


# Oracles


@WITH_EACH_PROPERTY
@settings(deadline=None)
@given(stream=streams(), r=st.sampled_from(POWERS))
def test_finite_errors_are_the_papers(property: Elicitable, v: naive.Identification, stream: Stream, r: float) -> None:
    y, p, x = stream
    functions = naive.columns(x.tolist())
    multicalibration, swap = (
        naive.multicalibration(y.tolist(), p.tolist(), functions, v, r),
        naive.swap_multicalibration(y.tolist(), p.tolist(), functions, v, r),
    )
    assert calibration_error(y, p, property=property, r=r) == close(naive.calibration(y.tolist(), p.tolist(), v, r))
    for hypotheses in (None, Finite(x.shape[1])):
        for contexts in (x, sparse.csr_matrix(x)):
            keywords: dict[str, Any] = {"property": property, "hypotheses": hypotheses, "r": r}
            assert multicalibration_error(y, p, contexts, **keywords) == close(multicalibration)
            assert swap_multicalibration_error(y, p, contexts, **keywords) == close(swap)


@WITH_EACH_PROPERTY
@settings(deadline=None)
@given(stream=streams(n=2), r=st.sampled_from((1.0, 1.5, 2.0, 3.0, 4.0, 5.5)))
def test_linear_errors_are_the_papers(property: Elicitable, v: naive.Identification, stream: Stream, r: float) -> None:
    y, p, x = stream
    n_directions = 400
    brute = naive.multicalibration(
        y.tolist(), p.tolist(), naive.directions_of_the_plane(x.tolist(), n_directions), v, r
    )
    # Every direction is within pi / 800 of one that was tried, and the error is r SMCal_r-Lipschitz in it.
    swap = naive.linear_swap_multicalibration(y.tolist(), p.tolist(), x.tolist(), v, r)
    slack = r * swap * math.pi / (2 * n_directions)
    bounds = multicalibration_bounds(y, p, x, property=property, hypotheses=Linear(2), r=r)
    assert brute - 1e-9 <= bounds.upper <= swap + 1e-9
    # The ascents do find the best direction of a plane.
    assert brute * (1 - 1e-6) - 1e-9 <= bounds.lower <= min(brute + slack, bounds.upper) + 1e-9
    assert multicalibration_error(y, p, x, property=property, hypotheses=Linear(2), r=r) == bounds.lower
    assert swap_multicalibration_error(y, p, x, property=property, hypotheses=Linear(2), r=r) == close(swap)
    if r == 2:
        assert bounds.lower == bounds.upper


@pytest.mark.parametrize(
    ("r", "shape"), crossed([1.0, 1.3, 1.9, 2.5, 3.0, 4.0, 7.0], [(6, 3), (30, 8), (8, 30), (1100, 3)], of=2)
)
def test_linear_bounds_hold_for_random_directions(r: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 50, shape[0]).astype(float)
    sums = rng.normal(size=shape) * np.sqrt(counts)[:, None] / 10
    theta = rng.normal(size=(2000, shape[1]))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    tried = np.sum(counts * np.abs(theta @ sums.T / counts) ** r, axis=1)
    bounds = linear_bounds(counts, sums, r)
    assert tried.max() <= bounds.lower <= bounds.upper
    eigenvalue = np.linalg.eigvalsh((sums / counts[:, None]).T @ sums)[-1]
    means = np.linalg.norm(sums, axis=1) / counts
    textbook = counts.sum() ** (1 - r / 2) * eigenvalue ** (r / 2) if r < 2 else means.max() ** (r - 2) * eigenvalue
    assert bounds.upper <= min(textbook, np.sum(counts * means**r)) * (1 + 1e-9)


@pytest.mark.parametrize(("r", "gap"), [(1.0, 0.04), (1.5, 0.02), (3.0, 0.2), (4.0, 0.25)])
def test_linear_bounds_are_close(r: float, gap: float) -> None:
    sums = np.random.default_rng(11).normal(size=(24, 6))
    lower, upper = linear_bounds(np.full(24, 40.0), sums, r)
    assert upper <= lower * (1 + gap)
    # Both are homogeneous of degree r, whatever the unit.
    for unit in (0.01, 3.0):
        scaled = linear_bounds(np.full(24, 40.0), unit * sums, r)
        assert np.array(scaled) / unit**r == pytest.approx([lower, upper], rel=1e-6)


def test_linear_bounds_of_one_value_and_of_nothing_are_exact() -> None:
    for r in (1.0, 1.5, 2.0, 3.0):
        assert linear_bounds(np.array([4.0]), np.array([[0.6, 0.8]]), r) == (close(4 * 0.25**r), close(4 * 0.25**r))
        assert linear_bounds(np.array([4.0]), np.zeros((1, 2)), r) == (0.0, 0.0)
    # Cosines that rounding has put above 1 stay finite to any power.
    assert linear_bounds(np.array([4.0, 3.0]), np.array([[0.43, 0.1], [0.86, 0.2]]), 1e308) == (0.0, 0.0)


@settings(deadline=None)
@given(stream=streams())
def test_cells_are_those_of_the_loop(stream: Stream) -> None:
    y, p, x = stream
    audit = Audit()
    audit.update_many(y, p, x)
    functions = naive.columns(x.tolist())
    cells = {(cell.value, cell.function): cell for cell in audit.cells()}
    for value in set(p.tolist()):
        for j, function in enumerate(functions):
            count, weight, mean = naive.cell(y.tolist(), p.tolist(), function, lambda p, y: p - y, value)
            if count:
                cell = cells.pop((value, j))
                assert (cell.count, cell.weight, cell.mean) == (count, close(weight), close(mean))
                assert cell.low <= cell.mean <= cell.high
    assert not cells


# Identities


@settings(deadline=None)
@given(stream=streams(), r=st.sampled_from(POWERS))
def test_one_constant_function_makes_all_errors_equal(stream: Stream, r: float) -> None:
    y, p, _ = stream
    ones = np.ones((len(y), 1))
    expected = close(calibration_error(y, p, r=r))
    assert multicalibration_error(y, p, ones, r=r) == expected
    assert swap_multicalibration_error(y, p, ones, r=r) == expected
    assert swap_multicalibration_error(y, p, ones, hypotheses=Linear(1), r=r) == expected
    audit = Audit()
    audit.update_many(y, p)
    assert (audit.calibration(r), audit.multicalibration(r), audit.swap_multicalibration(r)) == (expected,) * 3


@settings(deadline=None)
@given(stream=streams(), linear=st.booleans())
def test_errors_are_ordered(stream: Stream, linear: bool) -> None:
    y, p, x = stream
    audit = Audit(hypotheses=(Linear if linear else Finite)(x.shape[1]))
    audit.update_many(y, p, x)
    tiny = 1e-9
    for r in POWERS:
        assert (
            audit.multicalibration(r) <= audit.multicalibration_bounds(r).upper <= audit.swap_multicalibration(r) + tiny
        )
    swap_1, swap_2 = audit.swap_multicalibration(1), audit.swap_multicalibration(2)
    assert swap_2 - tiny <= swap_1 <= math.sqrt(len(y) * swap_2) + tiny


def test_bins_round_before_v_is_taken() -> None:
    y, x = np.array([0.0, 1.0, 1.0]), np.ones((3, 1))
    audit = Audit(Mean(low=0, high=2), bins=2)
    audit.update_many(y, [0.1, 0.9, 1.5], x)
    assert audit.values.tolist() == [0.5, 1.5]
    assert audit.calibration(1) == close(2 * abs((0.5 - 0 + 0.5 - 1) / 2) / 2 + 0.25)


def test_sparse_input_with_repeated_unordered_and_zero_entries() -> None:
    rows = sparse.csr_matrix(([0.25, 0.5, 0.0, 0.25], [2, 0, 1, 2], [0, 4, 4]), shape=(2, 3))
    dense = [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    one, two, three = Audit(), Audit(), Audit()
    one.update_many([0, 1], [0.5, 0.5], rows)
    two.update_many([0, 1], [0.5, 0.5], dense)
    three.update_many([0, 1], [0.5, 0.5], sparse.coo_matrix(dense))
    assert one.to_bytes() == two.to_bytes() == three.to_bytes()


# Intervals


def test_supermartingale_inequality_behind_the_adaptive_radius() -> None:
    z = np.linspace(-1, 1, 2001)[:, None]
    assert np.all(np.exp(TILTS * z - CURVATURES * z**2) <= 1 + TILTS * z + 1e-12)


def test_adaptive_radius_solves_its_equation() -> None:
    squares = np.array([0.0, 0.3, 7.0, 400.0, 1e6])
    radius = adaptive_radius(squares, 0.01)
    mixture = np.mean(np.exp(np.multiply.outer(radius, TILTS) - np.multiply.outer(squares, CURVATURES)), axis=1)
    assert np.all(mixture >= 200 * (1 - 1e-9))
    assert np.allclose(mixture, 200, rtol=1e-6)


def test_independent_radius_is_maurer_and_pontils() -> None:
    z = np.array([0.5, -0.25, 1.0, -1.0, 0.125])
    unit = (z + 1) / 2
    delta = 0.04
    one_side = math.sqrt(2 * unit.var(ddof=1) * math.log(2 / (delta / 2)) / 5) + 7 * math.log(2 / (delta / 2)) / (3 * 4)
    radius = independent_radius(np.array([5.0, 1.0]), np.array([z.sum(), 1.0]), np.array([z @ z, 1.0]), delta)
    assert radius[0] == close(5 * 2 * one_side)
    assert radius[1] == math.inf


def test_every_cell_gets_its_share_of_the_error_probability() -> None:
    y, p, x = simulated(500, 3, seed=8, n_bins=4)
    n_cells = 12
    for bins, rounds, share in ((None, "adaptive", n_cells * 13), (20, "adaptive", 60), (20, "independent", n_cells)):
        audit = Audit(bins=bins)
        audit.update_many(y, p, x)
        cells = audit.cells(0.9, rounds=rounds)  # type: ignore[arg-type]
        assert len(cells) == n_cells
        for cell in cells:
            here = (np.abs(p - cell.value) < 0.1) & (x[:, cell.function] == 1)
            z = cell.value - y[here]
            sums = np.array([len(z)]), np.array([z.sum()]), np.array([z @ z])
            alone = (
                adaptive_radius(sums[2], 0.1 / share)
                if rounds == "adaptive"
                else independent_radius(*sums, 0.1 / share)
            )
            assert cell.high == close(min(cell.mean + alone[0] / len(z), 1.0))
            assert cell.low == close(max(cell.mean - alone[0] / len(z), -1.0))


@pytest.mark.parametrize("rounds", ["adaptive", "independent"])
@pytest.mark.parametrize("bins", [None, 5])
def test_intervals_hold_together(rounds: Any, bins: int | None) -> None:
    """A low confidence, so that the test could see a failure; a run misses if any of its cells does."""
    n_runs, confidence, misses = some(300), 0.5, 0
    for seed in range(n_runs):
        audit = Audit(bins=bins)
        audit.update_many(*simulated(400, 40, seed=seed))
        misses += len(audit.cells(confidence, rounds=rounds).biased) > 0
    assert misses <= n_runs * (1 - confidence)


def test_adaptive_intervals_hold_at_the_worst_time() -> None:
    """A forecaster that picks its bin by past errors, and a reader who stops at the first alarm."""
    n_runs, alarms = some(60, least=20), 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        audit, total = Audit(), {0.25: 0.0, 0.75: 0.0}
        for t in range(200):
            p = max(total, key=lambda value: abs(total[value]))
            y = float(rng.random() < p)
            total[p] += p - y
            audit.update(y, p, [1.0])
            if t % 5 == 0 and len(audit.cells(0.5).biased):
                alarms += 1
                break
    assert alarms <= n_runs / 2


def test_intervals_find_a_planted_bias_and_the_witness_names_it() -> None:
    y, p, x = simulated(20_000, 6, seed=3)
    planted = (x[:, 4] == 1) & (p == 0.7)
    y[planted] = (np.random.default_rng(4).random(planted.sum()) < 0.45).astype(float)
    audit = Audit(names=[f"group {j}" for j in range(6)])
    audit.update_many(y, p, x)
    witness = audit.witness()
    assert (witness.value, witness.function, witness.name, witness.direction) == (0.7, 4, "group 4", None)
    assert 0 < witness.low < 0.25 < witness.high
    assert str(witness) == witness.sentence
    assert str(witness).startswith("Forecasts near 0.7 are too high for group 4: the mean outcome was 0.4")
    assert "95 % interval 0." in str(witness)
    worst = audit.worst(1)[0]
    assert (worst.value, worst.function, worst.mean, worst.low) == (0.7, 4, witness.mean, witness.low)
    # Only the planted forecast is biased, and the other groups see it only through their overlap with the planted one.
    assert {cell.value for cell in audit.cells().biased} == {0.7}
    assert {cell.value for cell in audit.reliability().biased} == {0.7}


def test_linear_witness_is_the_direction_of_the_supremum() -> None:
    y, p, x = simulated(3000, 3, seed=5)
    audit = Audit(hypotheses=Linear(3))
    audit.update_many(y, p, x)
    witness = audit.witness(r=1, confidence=0.9)
    assert witness.direction is not None
    assert np.linalg.norm(witness.direction) == close(1.0)
    scaled = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
    here = p == witness.value
    along = float(np.sum((scaled[here] @ witness.direction) * (p - y)[here]))
    assert witness.mean == close(along / here.sum())
    assert witness.contribution == close(along)
    assert witness.share == close(along / audit.swap_multicalibration(1))
    # The forecasts are calibrated, so 0 is inside, for any direction.
    assert witness.low < 0 < witness.high
    assert "may be chance" in str(witness)


def test_groups_hold_the_bias_that_was_to_be_expected_at_every_moment() -> None:
    """Forecasts that react to outcomes, and looks after every hundred rounds: all groups, at all looks at once."""
    missed, rng = 0, np.random.default_rng(5)
    for _ in range(100):
        audit, expected, size = Audit(hypotheses=Finite(3)), np.zeros(3), np.zeros(3)
        drift, outside = 0.0, False
        for _look in range(6):
            x = np.column_stack([np.ones(100), rng.random((100, 2)) < [0.3, 0.05]])
            chance = 0.3 + 0.2 * x[:, 1]
            p = np.clip(np.round(0.35 + drift + 0.1 * rng.random(100), 1), 0.0, 1.0)
            y = (rng.random(100) < chance).astype(float)
            drift = 0.3 * (y.mean() - p.mean())
            audit.update_many(y, p, x)
            expected, size = expected + x.T @ (p - chance), size + x.sum(axis=0)
            groups = {cell.function: cell for cell in audit.groups(0.9)}
            assert sorted(groups) == np.flatnonzero(size).tolist()
            for j, cell in groups.items():
                assert cell.count == size[j]
                outside |= not cell.low <= expected[j] / size[j] <= cell.high
        missed += outside
        assert groups[0].high - groups[0].low < 0.2
    assert missed <= 10


def test_groups_of_one_forecast_are_its_cells() -> None:
    rng = np.random.default_rng(6)
    audit = Audit(hypotheses=Finite(3))
    audit.update_many(rng.random(200), np.full(200, 0.4), rng.uniform(-1, 1, (200, 3)))
    assert list(audit.groups(r=1.0)) == list(audit.cells(r=1.0))
    audit.update_many(rng.random(200), np.full(200, 0.6), rng.uniform(-1, 1, (200, 3)))
    assert {cell.count for cell in audit.groups()} == {400}
    assert {cell.value for cell in audit.groups()} == {0.5}
