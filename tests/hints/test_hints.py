"""A hint that learns: as good as the best step size in hindsight, in any units, and a good citizen."""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import ALL
from swapcal.errors import InvalidInput, StateFileError
from swapcal.hints import OnlineRegression, RegressionState
from swapcal.hypotheses import Finite
from swapcal.properties import Expectile, Mean, Moment, Probability, Quantile
from swapcal.protocols import Elicitable, Row
from swapcal.simulate import streams
from swapcal.simulate.streams import Stream
from swapcal.typing import Float64Array

MAKERS: dict[str, Callable[[int, int], Stream]] = {
    "miscalibrated": streams.miscalibrated,
    "interacting": streams.interacting,
    "oscillating": streams.oscillating,
    "noisy": streams.noisy,
    "drifting": streams.drifting,
    "drifting binary": lambda n_rounds, seed: streams.drifting(n_rounds, seed, binary=True),
}
PROPERTIES: dict[str, Elicitable] = {"mean": Mean(), "quantile": Quantile(0.9), "expectile": Expectile(0.8)}
CASES = [
    (stream, name)
    for stream in MAKERS
    for name in (["mean", "quantile", "expectile"] if stream in ("noisy", "drifting") else ["mean"])
]


@cache
def stream_of(name: str, n_rounds: int, seed: int) -> Stream:
    return MAKERS[name](n_rounds, seed)


def sparse(x: Float64Array) -> Row:
    indices = np.flatnonzero(x)
    return Row(indices, x[indices])


def play(
    state: RegressionState,
    stream: Stream,
    *,
    base: bool = True,
    first: int = 0,
    last: int | None = None,
    features: Float64Array | None = None,
) -> Float64Array:
    """Forecast and update round by round."""
    features = stream.features if features is None else features
    last = stream.n_rounds if last is None else last
    forecasts = np.empty(last - first)
    for t in range(first, last):
        given = (sparse(stream.x[t]), features[t], float(stream.hint[t]) if base else None)
        forecasts[t - first] = state.forecast(*given)
        state.update(*given, float(stream.y[t]))
    return forecasts


def fixed_rates(property: Elicitable, stream: Stream, *, base: bool) -> Float64Array:
    """Mean loss of plain stochastic gradient descent, for two links and a fine grid of fixed rates each."""
    rates = np.tile(0.5 * 2.0 ** (-np.arange(32) / 2), 2)
    hint = np.clip(stream.hint, 1e-6, 1 - 1e-6)
    odds = np.log(hint / (1 - hint))
    inputs = np.hstack([np.ones((stream.n_rounds, 1)), stream.x, stream.features] + [odds[:, None]] * base)
    weights = np.zeros((inputs.shape[1], 64))
    offsets = np.stack([odds, stream.hint], axis=1) if base else np.tile([0.0, 0.5], (stream.n_rounds, 1))
    total = np.zeros(64)
    for s, offset, y in zip(inputs, offsets, stream.y, strict=True):
        z = s.dot(weights)
        z[:32] = 0.5 + 0.5 * np.tanh(0.5 * (z[:32] + offset[0]))
        z[32:] = np.minimum(np.maximum(z[32:] + offset[1], 0.0), 1.0)
        total += property.loss(z, y)
        weights -= np.multiply.outer(s, rates * property.identification(z, y))
    return total / stream.n_rounds


def check_against_fixed_rates(name: str, property: str, *, base: bool, seed: int, n_rounds: int = 20_000) -> None:
    stream, elicitable = stream_of(name, n_rounds, seed), PROPERTIES[property]
    state = OnlineRegression(n_features=10).start(elicitable, 20)
    rows = Finite(20).rows(stream.x, n_rounds)
    forecasts = state.run(rows, stream.features, stream.hint if base else None, stream.y)
    loss = float(np.mean(elicitable.loss(forecasts, stream.y)))
    assert loss <= 1.01 * float(fixed_rates(elicitable, stream, base=base).min())
    if base:
        assert loss < float(np.mean(elicitable.loss(stream.hint, stream.y)))


@pytest.mark.parametrize(("name", "property"), CASES if ALL else CASES[::3])
def test_within_one_percent_of_the_best_fixed_rate(name: str, property: str) -> None:
    check_against_fixed_rates(name, property, base=True, seed=0, n_rounds=20_000 if ALL else 8_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize(("name", "property"), CASES)
def test_within_one_percent_more_seeds_and_without_base(name: str, property: str, base: bool, seed: int) -> None:
    check_against_fixed_rates(name, property, base=base, seed=seed)


def test_a_good_model_is_left_alone() -> None:
    stream = streams.miscalibrated(5000, 0)
    truth = Stream(stream.x, stream.y, stream.truth_mean, stream.features, stream.truth_mean, None)
    forecasts = play(OnlineRegression(n_features=10).start(Mean(), 20), truth)
    best = float(np.mean((stream.truth_mean - stream.y) ** 2))
    assert float(np.mean((forecasts - stream.y) ** 2)) < 1.005 * best


# Citizenship


@pytest.mark.parametrize("link", [None, "identity", "logistic"])
@pytest.mark.parametrize("base", [-2.0, -1.7, 0.0, 0.3, 2.999, 3.0])
def test_starts_as_the_base_forecast(base: float, link: str | None) -> None:
    state = OnlineRegression(link=link).start(Expectile(0.7, low=-2.0, high=3.0), 4)
    row = sparse(np.array([1.0, 0, 0, 1.0]))
    assert state.forecast(row, None, base) == pytest.approx(base, abs=1e-15)
    assert state.forecast(row, None, base + 7.0) == 3.0
    assert state.forecast(row, None, None) == 0.5


def same(one: dict[str, Float64Array], other: dict[str, Float64Array]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_rounds_without_base_learn_their_own_level() -> None:
    state, row = OnlineRegression().start(Mean(), 1), Row(np.empty(0, dtype=np.int64), np.empty(0))
    rng = np.random.default_rng(0)
    for t in range(4000):
        if t % 2:
            state.update(row, None, None, float(rng.random() < 0.1))
        else:
            state.update(row, None, 0.7, float(rng.random() < 0.7))
    assert state.forecast(row, None, None) == pytest.approx(0.1, abs=0.05)
    assert state.forecast(row, None, 0.7) == pytest.approx(0.7, abs=0.05)


# Units


@pytest.mark.parametrize("property", PROPERTIES)
@pytest.mark.parametrize(("low", "high", "tolerance"), [(0.0, 4.0, 0.0), (-50.0, 1234.5, 1e-6), (0.0, 1e-9, 1e-6)])
def test_label_units_do_not_matter(property: str, low: float, high: float, tolerance: float) -> None:
    unit = stream_of("drifting", 500, 4)
    arrays = (low + (high - low) * unit.y, low + (high - low) * unit.hint, unit.features, unit.truth_mean)
    make = {"mean": Mean, "quantile": lambda **k: Quantile(0.9, **k), "expectile": lambda **k: Expectile(0.8, **k)}
    ranged = cast(Elicitable, cast(Any, make[property])(low=low, high=high))
    expected = play(OnlineRegression(n_features=10).start(PROPERTIES[property], 20), unit)
    got = play(OnlineRegression(n_features=10).start(ranged, 20), Stream(unit.x, *arrays, None))
    assert np.max(np.abs((got - low) / (high - low) - expected)) <= tolerance


@pytest.mark.parametrize(
    ("scale", "shift", "tolerance"), [(2.0**20, 0.0, 0.0), (1e6, 3e5, 1e-6), (1e-6, -1.0, 1e-6), (1e80, 0.0, 1e-6)]
)
def test_feature_units_do_not_matter(scale: float, shift: float, tolerance: float) -> None:
    stream = stream_of("miscalibrated", 500, 5)
    expected = play(OnlineRegression(n_features=10).start(Mean(), 20), stream)
    got = play(OnlineRegression(n_features=10).start(Mean(), 20), stream, features=shift + scale * stream.features)
    assert np.max(np.abs(got - expected)) <= tolerance


@settings(max_examples=30)
@given(
    data=st.data(),
    property=st.sampled_from([Mean(low=-1.0), Quantile(0.05), Expectile(0.99, high=1e9), Moment(2), Probability()]),
    link=st.sampled_from([None, "identity", "logistic"]),
)
def test_forecasts_stay_finite_and_in_the_domain(data: st.DataObject, property: Elicitable, link: str | None) -> None:
    state = OnlineRegression(n_features=2, link=link, rates=[1000.0, 1.0, 1e-6]).start(property, 3)
    unit = st.floats(0.0, 1.0)
    numbers = st.floats(-1e60, 1e60, allow_subnormal=True)
    for _ in range(12):
        row = sparse(np.array(data.draw(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3))))
        features = np.array(data.draw(st.tuples(numbers, numbers)))
        base = data.draw(st.one_of(st.none(), unit))
        low, high = property.domain
        base = None if base is None else low + (high - low) * base
        forecast = state.forecast(row, features, base)
        assert low <= forecast <= high
        label = property.low + (property.high - property.low) * data.draw(unit)
        state.update(row, features, base, float(round(label)) if isinstance(property, Probability) else label)
    assert all(np.isfinite(array).all() for array in state.arrays().values())


# Configuration and bad input


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_features": -1}, {"n_features": 1.5}, {"n_features": True}, {"rates": []}, {"rates": [0.1, 0.0]},
        {"rates": [float("nan")]}, {"rates": 0.1}, {"rates": ["fast"]}, {"link": "probit"},
    ],
)  # fmt: skip
def test_bad_configuration(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        OnlineRegression(**arguments)
    for spec in ({}, {"kind": "Mean"}, {"kind": "OnlineRegression", "depth": 3}):
        with pytest.raises(InvalidInput):
            OnlineRegression.from_spec(spec)
    boundless = cast(Elicitable, SimpleNamespace(domain=(0.0, float("inf"))))
    for start in ((Mean(), -1), (boundless, 1)):
        with pytest.raises(InvalidInput):
            OnlineRegression().start(*start)


ROW = sparse(np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("row", "features", "base"),
    [
        (ROW, None, 0.5), (ROW, np.zeros(3), 0.5), (ROW, np.zeros((2, 1)), 0.5), (ROW, np.array([0.0, np.nan]), 0.5),
        (ROW, np.array([0.0, -np.inf]), 0.5), (ROW, np.array([0.0, 1e200]), 0.5), (ROW, ["a", "b"], 0.5),
        (Row(np.array([1]), np.array([1e200])), np.zeros(2), 0.5), (ROW, np.zeros(2), float("nan")),
        (ROW, np.zeros(2), float("inf")), (Row(np.array([2]), np.ones(1)), np.zeros(2), 0.5),
        (Row(np.array([-1]), np.ones(1)), np.zeros(2), 0.5), (Row(np.array([0, 1]), np.ones(1)), np.zeros(2), 0.5),
        (Row(np.array([0]), np.array([np.nan])), np.zeros(2), 0.5),
    ],
)  # fmt: skip
def test_bad_rounds_change_nothing(row: Row, features: Any, base: float) -> None:
    state = OnlineRegression(n_features=2).start(Mean(), 2)
    state.update(ROW, np.ones(2), 0.5, 1.0)
    before = state.arrays()
    with pytest.raises(InvalidInput):
        state.forecast(row, features, base)
    with pytest.raises(InvalidInput):
        state.update(row, features, base, 0.5)
    missing = {name: array for name, array in before.items() if name != "mean"}
    for bad in (OnlineRegression().start(Mean(), 3).arrays(), missing, before | {"totals": np.full(11, np.nan)}):
        with pytest.raises(StateFileError):
            state.restore(bad)
    assert same(before, state.arrays())
