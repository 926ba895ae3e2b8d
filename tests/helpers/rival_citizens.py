"""What every rival obeys, and the stream on which that is looked at."""

import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from swapcal.errors import AlreadyUpdated, UnknownForecast
from swapcal.paper.method import PublishedMethod
from swapcal.typing import Float64Array

N_ROUNDS = 250
N_GROUPS = 4

Make = Callable[..., PublishedMethod]
Data = tuple[Float64Array, Float64Array, Float64Array]


def stream(n_rounds: int = N_ROUNDS, seed: int = 0) -> Data:
    """Overlapping groups, some rounds without any; labels that depend on them; a hint that is off."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n_rounds, N_GROUPS)) < 0.5).astype(np.float64)
    x[::10] = 0.0
    mean = 0.15 + 0.15 * x.sum(axis=1)
    return x, np.clip(mean + rng.uniform(-0.15, 0.15, n_rounds), 0.0, 1.0), np.clip(mean**2 + 0.1, 0.0, 1.0)


def learned(method: PublishedMethod) -> bytes:
    """All that a method has learned: its state without the book of open rounds."""
    return pickle.dumps({k: v for k, v in vars(method).items() if k not in ("_issued", "_open", "_identity")})


def looped(method: PublishedMethod, data: Data) -> list[float]:
    values = []
    for x, y, hint in zip(*data, strict=True):
        forecast = method.predict(x, hint=float(hint))
        method.update(forecast, float(y))
        values.append(float(forecast))
    return values


def check_rival(make: Make) -> None:
    """Loop and run agree; predict learns nothing; outcomes come in any order, once each; the domain is kept."""
    data = stream()
    one, two = make(seed=3), make(seed=3)
    values = looped(one, data)
    assert two.run(*data).tolist() == values
    assert learned(one) == learned(two)
    low, high = one.property.domain
    assert all(low <= v <= high for v in values)

    before = learned(one)
    forecasts = [one.predict(x, hint=float(h)) for x, h in zip(data[0][:8], data[2][:8], strict=True)]
    row = one.hypotheses.row(data[0][0])
    assert one.plan(row, 0.5) == one.plan(row, 0.5)
    assert learned(one) == before
    for t in (5, 0, 7):
        one.update(forecasts[t], float(data[1][t]))
    with pytest.raises(AlreadyUpdated):
        one.update(forecasts[5], 0.5)
    with pytest.raises(UnknownForecast):
        two.update(forecasts[1], 0.5)
    for x, hint in ((np.zeros(N_GROUPS), 0.0), (np.ones(N_GROUPS), 1.0)):
        plan = one.plan(one.hypotheses.row(x), hint)
        assert math.isclose(sum(plan.probabilities), 1.0, abs_tol=1e-12)
        assert min(plan.probabilities) >= 0.0
        assert all(low <= v <= high for v in plan.values)


def check_units(unit: PublishedMethod, wide: PublishedMethod) -> None:
    """The same problem in other units, [-2, 6] for [0, 1], has the same forecasts in those units."""
    x, y, hints = stream()
    expected = 8.0 * unit.run(x, y, hints) - 2.0
    np.testing.assert_allclose(wide.run(x, 8.0 * y - 2.0, 8.0 * hints - 2.0), expected, atol=1e-9)
