"""Two ways to say the same thing give the same numbers: loop or `run`, other units, special cases that coincide."""

from dataclasses import dataclass

import numpy as np
import pytest

import swapcal as sc
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

N = 4
POTENTIALS: dict[str, Potential] = {
    "AdaNormalHedge": AdaNormalHedge(),
    "Exponential": Exponential(),
    "Squint": Squint(),
    "PNorm": PNorm(3.0),
}
CLASSES = [*POTENTIALS, "Linear"]


def hypotheses_of(kind: str, n: int = N) -> Hypotheses:
    return sc.Linear(n) if kind == "Linear" else sc.Finite(n, potential=POTENTIALS[kind])


@dataclass(frozen=True)
class Stream:
    x: Float64Array
    y: Float64Array
    hints: Float64Array
    features: Float64Array


def stream_of(n_rounds: int, seed: int, *, n: int = N) -> Stream:
    """Two active functions a round, so that sums do not depend on their order; everything is a multiple of 1/64."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_rounds, n))
    for row in x:
        row[rng.choice(n, 2, replace=False)] = rng.choice([1.0, 0.5, -0.25], 2) * 0.625
    center = 0.5 + 0.4 * x[:, 0] + 0.2 * np.sin(np.arange(n_rounds) / 50.0)
    y = np.round(64 * np.clip(center + 0.2 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 64
    hints = np.round(32 * np.clip(center + 0.1 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 32
    return Stream(x, y, hints, rng.standard_normal((n_rounds, 2)))


def test_the_horizon_does_not_matter() -> None:
    """It is there for the guarantee ahead of a run; forecasts are the same with any, and without."""
    stream = stream_of(400, 23)
    runs = []
    for horizon in (None, 400, 10, 10**9):
        for hints in (None, stream.hints):
            forecaster = sc.Forecaster(sc.Quantile(0.7), sc.Finite(N), seed=4, horizon=horizon, jitter=0.01)
            runs.append(forecaster.run(stream.x, stream.y, hints).tolist())
            assert forecaster.guarantee() < forecaster.guarantee(n_rounds=400)
    assert all(run == runs[k % 2] for k, run in enumerate(runs))


def test_a_forecast_without_outcome_only_uses_up_its_draw() -> None:
    """The evidence does not know of it: the next distribution is that of a forecaster that never made it."""
    stream = stream_of(100, 19)
    one, two = (sc.Forecaster(sc.Mean(), sc.Finite(N), bins=5, seed=1) for _ in range(2))
    for t in range(100):
        two.predict(stream.x[-1 - t])
        assert one.distribution(stream.x[t]) == two.distribution(stream.x[t])
        played = two.predict(stream.x[t])
        # The other one draws until it has drawn the same.
        while (forecast := one.predict(stream.x[t])).value != played.value:
            assert forecast.value == played.other
        one.update(forecast, stream.y[t])
        two.update(played, stream.y[t])
    assert two.n_pending == 100
    assert one.error() == two.error() > 0.0


CHANGES = ["a zero function is added", "functions are negated", "functions are permuted", "every function comes twice"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
def test_what_changes_no_forecast(kind: str, hinted: bool, change: str) -> None:
    """Zeros have no weight, weights are odd, and doubling all of Phi keeps signs and ratios."""
    stream = stream_of(250, 15)
    hints = stream.hints if hinted else None
    scale = 0.5 if kind == "Linear" else 1.0
    if change == "a zero function is added":
        x = np.hstack([stream.x[:, :2], np.zeros((250, 1)), stream.x[:, 2:]])
    elif change == "functions are negated":
        x = stream.x * np.array([1.0, -1.0, -1.0, 1.0])
    elif change == "functions are permuted":
        x = stream.x[:, [2, 0, 3, 1]]
    else:
        # Side by side, so that partial sums are twice what they were; halved to stay in the unit ball.
        x = np.repeat(stream.x[:, :1] * scale, 2, axis=1)
        stream = Stream(stream.x[:, :1] * scale, stream.y, stream.hints, stream.features)
    one = sc.Forecaster(sc.Mean(), hypotheses_of(kind, stream.x.shape[1]), bins=6, seed=6, levels=0)
    two = sc.Forecaster(sc.Mean(), hypotheses_of(kind, x.shape[1]), bins=6, seed=6, levels=0)
    assert one.run(stream.x, stream.y, hints).tolist() == two.run(x, stream.y, hints).tolist()
    factor = 2.0 if kind == "Linear" and change == "every function comes twice" else 1.0
    assert two.error() == pytest.approx(factor * one.error(), rel=1e-12)


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("unit", "scaled"),
    [
        (sc.Mean(), sc.Mean(low=-3.0, high=5.0)),
        (sc.Expectile(0.8), sc.Expectile(0.8, low=-3.0, high=5.0)),
        (sc.Quantile(0.75), sc.Quantile(0.75, low=-3.0, high=5.0)),
    ],
    ids=["mean", "expectile", "quantile"],
)
def test_units_of_labels(unit: Elicitable, scaled: Elicitable, kind: str, hinted: bool) -> None:
    """Labels and hints on a grid of powers of two, so that the change of units is exact."""
    stream = stream_of(190, 16)
    one, two = (sc.Forecaster(each, hypotheses_of(kind), bins=8, seed=7) for each in (unit, scaled))
    p = one.run(stream.x, stream.y, stream.hints if hinted else None)
    q = two.run(stream.x, -3.0 + 8.0 * stream.y, -3.0 + 8.0 * stream.hints if hinted else None)
    assert q.tolist() == (-3.0 + 8.0 * p).tolist()
    assert two.error() == one.error()
    assert two.guarantee() == one.guarantee()


def test_other_names_of_the_mean() -> None:
    """The first moment, the probability of a binary label, and a user's own p - y."""
    stream = stream_of(200, 18)
    y = np.round(stream.y)
    own = sc.Property(lambda p, y: p - y, name="own mean")
    runs, errors = [], []
    for each in (sc.Mean(), sc.Moment(1), sc.Probability(), sc.Probability(sc.Log()), own):
        forecaster = sc.Forecaster(each, sc.Finite(N), bins=6, seed=2)
        runs.append(forecaster.run(stream.x, y, stream.hints).tolist())
        errors.append(forecaster.error())
    assert all(run == runs[0] for run in runs)
    assert all(error == errors[0] > 0.0 for error in errors)
