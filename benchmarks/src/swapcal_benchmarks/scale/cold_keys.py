"""Keys with a hundred rows: from nothing, and from what the others have learned."""

from typing import NamedTuple

import numpy as np

from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite
from swapcal.keyed import Keyed
from swapcal.properties import Probability

__all__ = ["ColdKeys", "cold_keys"]


class ColdKeys(NamedTuple):
    """Mean squared error of keys from the 51st on: from nothing, with the pooled hint and state, and of the truth."""

    rows: int
    learning: bool
    nothing: float
    pooled: float
    truth: float


def cold_keys(n_rows: int, *, learning: bool, n_keys: int = 150) -> ColdKeys:
    """Keys whose rates differ a little around those of two groups; the first 50 warm the pooled forecaster up."""
    losses = [_losses(n_rows, learning, cold, n_keys) for cold in (0, 100)]
    return ColdKeys(n_rows, learning, losses[0][0], losses[1][0], losses[0][1])


def _losses(n_rows: int, learning: bool, cold: int, n_keys: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    hint = OnlineRegression() if learning else None
    template = Forecaster(Probability(), Finite(3), seed=1, max_pending=64, hint=hint)
    keyed, found, best = Keyed(template, cold=cold), [], []
    for key in range(n_keys):
        shift = 0.05 * rng.standard_normal()
        for _ in range(n_rows):
            group = float(rng.random() < 0.4)
            rate = float(np.clip(0.15 + 0.4 * group + shift, 0.01, 0.99))
            y = float(rng.random() < rate)
            forecast = keyed.predict(key, [1.0, group, 1.0 - group])
            if key >= 50:
                found.append((float(forecast) - y) ** 2)
                best.append((rate - y) ** 2)
            keyed.update(forecast, y)
    return float(np.mean(found)), float(np.mean(best))
