"""A range that was not given follows the outcomes: the promise holds in its units, and so does what is stored."""

from typing import Any

import numpy as np
import pytest

import swapcal as sc
from swapcal.errors import InvalidInput

N = 4000


def growing(seed: int, n: int = N) -> tuple[Any, Any]:
    """Groups, and outcomes that leave every range: each thousand rows they are some three times as large."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, n)
    return {"g": groups}, rng.normal(groups, 1.0, n) * np.exp(np.arange(n) / 1000.0)


def following(**own: Any) -> sc.Forecaster:
    return sc.Forecaster(sc.Mean(low=-1.0, high=1.0), sc.Groups(["g"]), seed=3, outside="follow", **own)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("hint", [None, sc.OnlineRegression()])
def test_the_promise_survives_doublings(seed: int, hint: Any) -> None:
    x, y = growing(seed)
    forecaster = following(hint=hint)
    forecaster.run(x, y)
    target: Any = forecaster.property
    assert target.low <= y.min()
    assert y.max() <= target.high
    assert target.high - target.low <= 8 * (y.max() - y.min())
    for said in (False, True):
        assert forecaster.error(said=said) <= forecaster.guarantee(said=said)


def test_both_backends_follow_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = growing(1, 1500)
    forecasts = []
    for backend in ("python", "native"):
        monkeypatch.setenv("SWAPCAL_BACKEND", backend)
        forecasts.append(np.asarray(following(hint=sc.OnlineRegression()).run(x, y)))
    assert np.array_equal(forecasts[0], forecasts[1])


def test_a_stored_forecaster_goes_on_where_it_was() -> None:
    x, y = growing(2)
    whole, first = following(), following()
    expected = np.asarray(whole.run(x, y))
    half = N // 2
    first.run({"g": x["g"][:half]}, y[:half])
    assert first.property != following().property
    second = sc.Forecaster.from_bytes(first.to_bytes())
    assert second.property == first.property
    assert np.array_equal(second.run({"g": x["g"][half:]}, y[half:]), expected[half:])


def test_one_wild_outcome_doubles_the_range_once() -> None:
    x, y = growing(3, 600)
    forecaster = following()
    forecaster.run({"g": x["g"][:500]}, y[:500])
    low, high = forecaster.property.domain
    forecaster.run({"g": x["g"][:1]}, [1e9])
    assert forecaster.property.domain == (low, high + (high - low))


def test_forecasts_are_as_good_where_outcomes_have_moved() -> None:
    rng = np.random.default_rng(4)
    level = np.where(np.arange(6000) < 3000, 50.0, 300.0)
    model = level + rng.normal(0, 5, 6000)
    y = model + rng.normal(0, 5, 6000)
    forecaster = sc.Forecaster(sc.Mean(low=25.0, high=75.0), sc.Groups(["g"]), seed=0, outside="follow")
    shown = np.asarray(forecaster.run({"g": rng.integers(0, 3, 6000)}, y, model))
    late = slice(4000, None)
    assert np.mean((shown - y)[late] ** 2) <= 1.02 * np.mean((model - y)[late] ** 2)


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e6])
def test_an_interval_covers_after_any_shift(shift: float) -> None:
    rng = np.random.default_rng(5)
    y = rng.normal(0, 1, 3000) + np.where(np.arange(3000) < 1500, 0.0, shift)
    interval = sc.Interval(0.9, sc.Groups(["g"]), seed=0)
    x = {"g": rng.integers(0, 3, 3000)}
    shown = interval.run(x, y)
    lower, upper = shown[:, 0], shown[:, -1]
    inside = (lower <= y) & (y <= upper)
    assert inside[2000:].mean() >= 0.85
    assert np.median((upper - lower)[2500:]) <= 20


def test_what_cannot_follow_says_so() -> None:
    for target in (sc.Mean(), sc.Median()):
        with pytest.raises(InvalidInput, match="outside='follow' is for outcomes with a range"):
            sc.Forecaster(target, sc.Groups(["g"]), outside="follow", bins=10)
