"""Streams and tables for the tests of tallies and verdicts."""

from typing import Any

import numpy as np

import swapcal as sc
from swapcal.protocols import Elicitable, Rows
from swapcal.typing import Float64Array

PROPERTIES: list[Elicitable] = [
    sc.Mean(low=-1.0, high=3.0),
    sc.Quantile(0.9, low=-1.0, high=3.0),
    sc.Expectile(0.8, low=-1.0, high=3.0),
    sc.Moment(2, low=-1.0, high=3.0),
]


def stream(n: int, seed: int = 0, n_groups: int = 4) -> tuple[Float64Array, Float64Array, Float64Array]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, n_groups)) < 0.4).astype(np.float64)
    x[:, 0] = 1.0
    p = rng.integers(0, 25, n) / 24.0
    return rng.uniform(-1.0, 3.0, n), p, x


def rows_of(x: Float64Array) -> Rows:
    return sc.Finite(x.shape[1]).rows(x, len(x))


def table(n: int, seed: int = 0, **chances: Any) -> dict[str, Any]:
    """A calibrated model of a 0/1 outcome, with two columns of groups; `shift` makes group a of g biased."""
    rng = np.random.default_rng(seed)
    g = rng.choice(["a", "b", "c"], n)
    p = rng.beta(2.0, 3.0, n)
    truth = np.clip(p + chances.get("shift", 0.0) * (g == "a"), 0.0, 1.0)
    return {"y": (rng.random(n) < truth).astype(float), "p": p, "g": g, "h": rng.integers(0, 4, n)}


def models(n: int = 6000) -> dict[str, Any]:
    """`good` knows the truth, `bad` is too high for g=a, `flat` is a constant; and weights."""
    rng = np.random.default_rng(3)
    g, truth = rng.choice(["a", "b", "c"], n), rng.beta(2, 3, n)
    y = (rng.random(n) < truth).astype(float)
    bad = np.clip(truth + 0.2 * (g == "a"), 0.0, 1.0)
    return {"y": y, "g": g, "w": rng.random(n), "bad": bad, "good": truth, "flat": np.full(n, 0.4)}


Stream = tuple[Float64Array, Float64Array, Float64Array]
"""Labels, forecasts, contexts."""


def simulated(n_rounds: int, n: int, seed: int, *, n_bins: int = 5) -> Stream:
    """Calibrated forecasts: each label is 1 with the forecast probability. Contexts are overlapping groups."""
    rng = np.random.default_rng(seed)
    p = (rng.integers(0, n_bins, n_rounds) + 0.5) / n_bins
    return (rng.random(n_rounds) < p).astype(float), p, (rng.random((n_rounds, n)) < 0.5).astype(float)
