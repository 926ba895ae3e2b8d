"""Bins and draws: what everything else stands on. Values and gaps are compared with the oracle's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swapcal as sc
from swapcal.engine.kernels import mix64, uniform

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
