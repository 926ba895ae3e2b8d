"""One look at independent outcomes: exact tails by enumeration."""

import numpy as np
import pytest
from scipy import stats

from naive_intervals import clopper_pearson
from swapcal.typing import Float64Array
from swapcal_benchmarks.independent_intervals import independent_bias


def share_interval(n: int, delta: float) -> tuple[Float64Array, Float64Array]:
    """Interval of the average mean, for every number of ones."""
    ones = np.arange(n + 1.0)
    found = independent_bias(np.full(n + 1, float(n)), ones, np.zeros(n + 1), delta)
    return -found.high, -found.low


@pytest.mark.parametrize("n", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("delta", [0.2, 0.01])
def test_each_tail_misses_with_at_most_half_of_delta(n: int, delta: float) -> None:
    low, high = share_interval(n, delta)
    for m in np.linspace(0.0005, 0.9995, 400):
        probability = stats.binom.pmf(np.arange(n + 1), n, m)
        assert probability[low > m].sum() <= delta / 2 + 1e-12
        assert probability[high < m].sum() <= delta / 2 + 1e-12


def test_different_means_change_nothing() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 5, 30):
        low, high = share_interval(n, 0.1)
        for _ in range(100):
            means = rng.random(n) ** rng.uniform(0.2, 6)
            probability = np.ones(1)
            for mean in means:
                probability = np.convolve(probability, [1 - mean, mean])
            assert probability[low > means.mean() + 1e-12].sum() <= 0.05 + 1e-12
            assert probability[high < means.mean() - 1e-12].sum() <= 0.05 + 1e-12


@pytest.mark.parametrize(("n", "most"), [(30, 1.13), (200, 1.06), (2000, 1.02), (20000, 1.01)])
def test_half_widths_beside_clopper_and_pearson(n: int, most: float) -> None:
    for share in (0.5, 0.25):
        ones = round(n * share)
        found = independent_bias(np.array([float(n)]), np.array([float(ones)]), np.zeros(1), 0.05 / 1000)
        low, high = clopper_pearson(n, ones, 0.05 / 1000)
        assert 0.99 < (found.high[0] - found.low[0]) / (high - low) < most


def test_a_cell_without_rows_knows_nothing() -> None:
    found = independent_bias(np.zeros(1), np.zeros(1), np.zeros(1), 0.05)
    assert (found.low[0], found.high[0]) == (-1.0, 1.0)
