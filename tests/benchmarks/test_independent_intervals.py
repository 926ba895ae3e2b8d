"""One look at independent outcomes: exact tails by enumeration."""

import numpy as np
import pytest
from scipy import stats

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
