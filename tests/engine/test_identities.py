"""Two ways to say the same thing give the same numbers: any horizon, other units, other names of the mean."""

import numpy as np
import pytest

import swapcal as sc
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

N = 4
POTENTIALS: list[Potential] = [AdaNormalHedge(), Exponential(), Squint(), PNorm(3.0)]
CLASSES: list[Hypotheses] = [*(sc.Finite(N, potential=each) for each in POTENTIALS), sc.Linear(N)]


def stream_of(n_rounds: int, seed: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Two active functions a round, so that sums do not depend on their order; everything is a multiple of 1/64."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_rounds, N))
    for row in x:
        row[rng.choice(N, 2, replace=False)] = rng.choice([1.0, 0.5, -0.25], 2) * 0.625
    center = 0.5 + 0.4 * x[:, 0] + 0.2 * np.sin(np.arange(n_rounds) / 50.0)
    y = np.round(64 * np.clip(center + 0.2 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 64
    return x, y, np.round(32 * np.clip(center + 0.1 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 32


def test_the_horizon_does_not_matter() -> None:
    """It is there for the guarantee ahead of a run; forecasts are the same with any, and without."""
    x, y, given = stream_of(400, 23)
    runs = []
    for horizon in (None, 400, 10, 10**9):
        for hints in (None, given):
            forecaster = sc.Forecaster(sc.Quantile(0.7), sc.Finite(N), seed=4, horizon=horizon, jitter=0.01)
            runs.append(forecaster.run(x, y, hints).tolist())
            assert forecaster.guarantee() < forecaster.guarantee(n_rounds=400)
    assert all(run == runs[k % 2] for k, run in enumerate(runs))


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("hypotheses", CLASSES, ids=repr)
@pytest.mark.parametrize(
    ("unit", "scaled"),
    [
        (sc.Mean(), sc.Mean(low=-3.0, high=5.0)),
        (sc.Expectile(0.8), sc.Expectile(0.8, low=-3.0, high=5.0)),
        (sc.Quantile(0.75), sc.Quantile(0.75, low=-3.0, high=5.0)),
    ],
    ids=["mean", "expectile", "quantile"],
)
def test_units_of_labels(unit: Elicitable, scaled: Elicitable, hypotheses: Hypotheses, hinted: bool) -> None:
    """Labels and hints on a grid of powers of two, so that the change of units is exact."""
    x, y, hints = stream_of(190, 16)
    one, two = (sc.Forecaster(each, hypotheses, bins=8, seed=7) for each in (unit, scaled))
    p = one.run(x, y, hints if hinted else None)
    q = two.run(x, -3.0 + 8.0 * y, -3.0 + 8.0 * hints if hinted else None)
    assert q.tolist() == (-3.0 + 8.0 * p).tolist()
    assert two.error() == one.error()
    assert two.guarantee() == one.guarantee()


def test_other_names_of_the_mean() -> None:
    """The first moment, the probability of a binary label, and a user's own p - y."""
    x, y, hints = stream_of(200, 18)
    y = np.round(y)
    own = sc.Property(lambda p, y: p - y, name="own mean")
    runs, errors = [], []
    for each in (sc.Mean(), sc.Moment(1), sc.Probability(), sc.Probability(sc.Log()), own):
        forecaster = sc.Forecaster(each, sc.Finite(N), bins=6, seed=2)
        runs.append(forecaster.run(x, y, hints).tolist())
        errors.append(forecaster.error())
    assert all(run == runs[0] for run in runs)
    assert all(error == errors[0] > 0.0 for error in errors)
