"""The formula for the bytes of a forecaster, in docs/performance.md, against the arrays that are there."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.cases import Cases, Events
from swapcal.keyed.keyed import forecaster_for_key
from swapcal.learners import GradientDescent, MultiplicativeWeights
from swapcal_benchmarks.speed.sizes_of_state import array_bytes, file_bound, formula

CLASSES: dict[str, Any] = {
    "finite": sc.Finite(7),
    "finite, one function": sc.Finite(1),
    "finite, p-norm": sc.Finite(5, potential=sc.potentials.PNorm()),
    "finite, squint": sc.Finite(5, potential=sc.potentials.Squint()),
    "linear": sc.Linear(6),
    "linear, quadratic": sc.Linear(6, potential=sc.potentials.Quadratic()),
    "oracle, gradient": sc.Oracle(GradientDescent(4)),
    "oracle, weights": sc.Oracle(MultiplicativeWeights(5)),
}
HINTS: dict[str, Any] = {
    "no hint": None,
    "regression": sc.OnlineRegression(),
    "features": sc.OnlineRegression(n_features=3, most_full=4),
}


def played(hypotheses: Any, hint: Any, **settings: Any) -> sc.Forecaster:
    rng = np.random.default_rng(1)
    forecaster = sc.Forecaster(sc.Mean(), hypotheses, hint=hint, seed=1, **settings)
    n_features = 0 if hint is None else hint.n_features
    X = rng.uniform(-0.4, 0.4, (300, hypotheses.n))
    features = rng.normal(size=(300, n_features)) if n_features else None
    forecaster.run(X, rng.random(300), rng.random(300), features=features)
    return forecaster


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("settings", [{}, {"levels": 0}, {"levels": 3, "horizon": 500, "max_pending": 100}], ids=str)
@pytest.mark.parametrize("name", CLASSES)
def test_the_formula_counts_every_byte_and_bounds_the_file(name: str, settings: dict[str, Any], hint: str) -> None:
    forecaster = played(CLASSES[name], HINTS[hint], **settings)
    assert array_bytes(forecaster) == formula(forecaster)
    assert 0 < len(forecaster.to_bytes()) <= file_bound(forecaster)


@pytest.mark.parametrize(
    ("hypotheses", "hint", "expected"),
    [
        # The page's words, worked out by hand for 35 values, 10 levels, 10 blocks and 1000 forecasts that may wait.
        (sc.Finite(20), None, 8 * (35 * (6 * 30 + 10) + 61) + 16 * 176),
        (sc.Linear(10), None, 8 * (35 * (4 * 20 + 3 * 11 + 10) + 40 + 22 + 1) + 16 * 176),
        (sc.Linear(10, potential=sc.potentials.Quadratic()), None, 8 * (35 * (4 * 10 + 10) + 20) + 16 * 176),
        (sc.Oracle(GradientDescent(10)), None, 8 * (35 * (70 + 6 + 13) + 50 + 2 + 1) + 16 * 176),
        (sc.Oracle(MultiplicativeWeights(20)), None, 8 * (35 * (70 + 12 + 13) + 50 + 4 + 1) + 16 * 176),
        (
            sc.Linear(10),
            sc.OnlineRegression(n_features=2),
            8 * (35 * 123 + 63 + 16 * 15 + 2 * 15 * 14 + 62) + 16 * 214,
        ),
    ],
    ids=["finite", "linear", "quadratic", "gradient", "weights", "regression"],
)
def test_the_formula_is_the_one_on_the_page(hypotheses: Any, hint: Any, expected: int) -> None:
    assert formula(sc.Forecaster(sc.Mean(), hypotheses, bins=35, hint=hint, max_pending=1000, blocks=10)) == (
        expected + 16 * (130 + 481) + 4 * 1000 + 616
    )


def test_the_formula_counts_rounds_that_wait_and_values_that_were_added() -> None:
    rng = np.random.default_rng(3)
    forecaster = sc.Forecaster(sc.Mean(), sc.Finite(7), seed=1)
    hints = rng.random(3_000)
    y = np.clip(hints + 0.002 * rng.standard_normal(3_000), 0.0, 1.0)
    forecaster.run(rng.integers(0, 2, (3_000, 7)).astype(float), y, hints, known=np.arange(3_000) + 40)
    assert forecaster.state.values.capacity > 32
    assert len(forecaster.state.waiting.whole) > 16
    assert array_bytes(forecaster) == formula(forecaster)


@pytest.mark.parametrize("property", [sc.Probability(), sc.Quantile(0.9)], ids=str)
def test_a_key_is_small_with_a_thousand_rows_of_22_weights_and_so_are_its_open_rounds(property: Any) -> None:
    template = sc.Forecaster(property, sc.Finite(19), hint=sc.OnlineRegression(), seed=1)
    forecaster = forecaster_for_key(template, "key", '"Paris"')
    assert len(forecaster.to_bytes()) <= 1_000
    rng = np.random.default_rng(1)
    groups = (rng.random((1_300, 19)) < 0.3).astype(float)
    hints = rng.uniform(0.1, 0.9, 1_300)
    events = isinstance(property, sc.Probability)
    y = (rng.random(1_300) < hints) * 1.0 if events else np.clip(hints + rng.normal(0.0, 0.1, 1_300), 0.0, 1.0)
    forecaster.run(groups[:1_000], y[:1_000], hints[:1_000])
    assert len(forecaster.to_bytes()) <= 16_000
    cases = Cases(forecaster)
    before = len(cases.to_bytes())
    waiting = Events([f"case {k}" for k in range(300)], np.full(300, np.nan), groups[1_000:], hints[1_000:])
    cases.play(waiting)
    assert len(cases.to_bytes()) - before <= 250 * 300
