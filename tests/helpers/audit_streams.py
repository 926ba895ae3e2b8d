"""Streams for the audit's tests, and what it means that two audits hold the same."""

import numpy as np

from swapcal.audits import Audit
from swapcal.typing import Float64Array

Stream = tuple[Float64Array, Float64Array, Float64Array]
"""Labels, forecasts, contexts."""


def simulated(n_rounds: int, n: int, seed: int, *, n_bins: int = 5) -> Stream:
    """Calibrated forecasts: each label is 1 with the forecast probability. Contexts are overlapping groups."""
    rng = np.random.default_rng(seed)
    p = (rng.integers(0, n_bins, n_rounds) + 0.5) / n_bins
    return (rng.random(n_rounds) < p).astype(float), p, (rng.random((n_rounds, n)) < 0.5).astype(float)


def same_sums(one: Audit, two: Audit) -> bool:
    """Equal up to the rounding of another order of addition."""
    first, second = one.to_state(), two.to_state()
    return first.plain == second.plain and all(
        np.allclose(array, second.arrays[name], rtol=0, atol=1e-12) for name, array in first.arrays.items()
    )
