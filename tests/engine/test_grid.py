"""The grid, the draw, and the number of bins: what everything else stands on."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swapcal as sc
from swapcal.engine import schedule as horizon
from swapcal.engine.randomness import mix64, uniform

intervals = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(intervals, st.integers(1, 400))
def test_borders_and_midpoints_lie_in_their_own_bin(ends: tuple[float, float], n: int) -> None:
    grid = sc.Grid(*ends, n)
    for i in (0, n // 3, n // 2, n - 1):
        assert grid.bin(grid.border(i)) == i
        assert grid.bin(grid.midpoint(i)) == i
    assert grid.bin(ends[1]) == n - 1
    assert grid.bin(ends[0] - 1.0) == 0
    assert grid.bin(ends[1] + 1.0) == n - 1


@given(intervals, st.integers(1, 60), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_the_array_form_agrees_with_the_scalar_form(ends: tuple[float, float], n: int, shares: list[float]) -> None:
    grid = sc.Grid(*ends, n)
    values = np.array([ends[0] + share * (ends[1] - ends[0]) for share in shares])
    assert grid.bins(values).tolist() == [grid.bin(value) for value in values.tolist()]
    assert grid.round(values).tolist() == [grid.midpoint(i) for i in grid.bins(values).tolist()]


@given(intervals, st.integers(1, 300), st.sampled_from([3, 9, 27]))
def test_refinement_keeps_every_midpoint_to_the_bit(ends: tuple[float, float], n: int, factor: int) -> None:
    grid = sc.Grid(*ends, n)
    fine = grid.refined(factor)
    for i in range(0, n, max(1, n // 7)):
        assert fine.midpoint(factor * i + factor // 2) == pytest.approx(grid.midpoint(i), rel=0, abs=0)


@pytest.mark.parametrize("bad", [(0.0, 1.0, 0), (0.0, 1.0, 2.5), (0.0, 1.0, True), (1.0, 1.0, 3), (0.0, math.inf, 3)])
def test_a_grid_refuses_what_is_none(bad: tuple[float, float, int]) -> None:
    with pytest.raises(sc.InvalidInput, match="grid needs"):
        sc.Grid(*bad)


def test_draws_are_uniform_and_independent_of_each_other() -> None:
    draws = np.array([uniform(3, t) for t in range(20_000)])
    assert 0.0 <= draws.min() < draws.max() < 1.0
    counts = np.histogram(draws, bins=50, range=(0.0, 1.0))[0]
    assert np.sum((counts - 400.0) ** 2 / 400.0) < 89.0  # the 0.9995 quantile of chi-square with 49 degrees of freedom
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.03
    other = np.array([uniform(4, t) for t in range(20_000)])
    assert abs(np.corrcoef(draws, other)[0, 1]) < 0.03


def test_the_mixing_function_is_splitmix64() -> None:
    # The first outputs of SplitMix64 with seed 0, from the reference implementation.
    golden = 0x9E3779B97F4A7C15
    assert [mix64(k * golden) for k in (1, 2, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_bins_of_every_horizon() -> None:
    """The least odd N >= 11 with N >= 0.75 T^(1/3), in whole numbers; at T = (4m)^3 that root is the whole 3m."""
    near_cubes = [(4 * m) ** 3 + more for m in range(1, 80) for more in (-1, 0, 1)]
    for n_rounds in (*range(1, 5000), *near_cubes):
        n_bins = next(n for n in itertools.count(11, 2) if 64 * n**3 >= 27 * n_rounds)
        assert horizon.bins_for(n_rounds, 2.0) == n_bins, n_rounds


@pytest.mark.parametrize("share", [0.75, 1.1, 3.0])
@pytest.mark.parametrize("r", [1.0, 2.0, 3.5])
def test_an_anytime_grid_stays_near_the_one_for_its_rounds(r: float, share: float) -> None:
    stages = horizon.stages(10**7, r, share)
    assert sum(rounds for _, rounds in stages) == 10**7
    done = 0
    for n_bins, rounds in stages:
        done += rounds
        assert n_bins <= math.sqrt(3.0) * horizon.bins_for(max(done - rounds, 1), r, share)
        assert horizon.bins_for(done, r, share) <= math.ceil(math.sqrt(3.0) * n_bins) + 1


def test_an_anytime_grid_stays_near_the_best() -> None:
    """N is within sqrt(3) of 0.75 T^(1/3), but for the first 607 rounds, where that would be less than 11 bins."""
    done = 0
    for n_bins, rounds in horizon.stages(10_000_000, 2.0):
        for t in {done + 1, done + 607, done + 608, done + rounds}:
            best = 0.75 * t ** (1.0 / 3.0)
            assert (n_bins <= math.sqrt(3.0) * best * (1.0 + 1e-12)) == (t >= 608)
            assert best <= math.sqrt(3.0) * n_bins * 1.0001  # the last round is in before the grid is cut
            assert best <= horizon.bins_for(t, 2.0) < max(best + 2.0, 12.0)
        done += rounds


def test_the_p_norm_survives_tiny_and_huge_evidence() -> None:
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(1, potential=sc.potentials.PNorm(27.0)), bins=1)
    for y in (0.7, 0.2, 0.6):
        forecaster.update(forecaster.predict([1.0]), y)
    wide = sc.Forecaster(sc.Mean(), sc.Finite(16, potential=sc.potentials.PNorm()), bins=2)
    wide.update(wide.predict({0: 1e-100}), 1.0)
    weights = sc.potentials.PNorm(60.0).row_weights(np.array([1e6, -3e5, 0.0]), 10.0)
    assert np.isfinite(weights).all()
    assert forecaster.n_rounds == 3
    assert wide.n_rounds == 1
