"""A hint that learns: its oracle's numbers, about as good as the best step size in hindsight, in any units."""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import ALL, crossed
from naive_hint import NaiveHint
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
    """Mean loss of plain stochastic gradient descent, for a fine grid of fixed rates; logistic for events."""
    rates = 0.5 * 2.0 ** (-np.arange(32) / 2)
    events = set(stream.y.tolist()) == {0.0, 1.0}
    hint = np.clip(stream.hint, 1e-6, 1 - 1e-6)
    odds = np.log(hint / (1 - hint))
    inputs = np.hstack([np.ones((stream.n_rounds, 1)), stream.x, stream.features] + [odds[:, None]] * base)
    weights, total = np.zeros((inputs.shape[1], 32)), np.zeros(32)
    offsets = (odds if events else stream.hint) if base else np.full(stream.n_rounds, 0.0 if events else 0.5)
    for s, offset, y in zip(inputs, offsets, stream.y, strict=True):
        z = s.dot(weights) + offset
        z = 0.5 + 0.5 * np.tanh(0.5 * z) if events else np.minimum(np.maximum(z, 0.0), 1.0)
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


def outcome_of(property: Elicitable, unit: float) -> float:
    """An outcome whose property alone is at this place of the domain."""
    return float(property.low + (property.high - property.low) * unit ** (1.0 / int(property.kernel["power"])))


@pytest.mark.parametrize(
    ("property", "events", "most_full", "late"),
    crossed(
        [Mean(low=-3.0, high=5.0), Probability(), Quantile(0.9, low=10.0, high=13.0), Expectile(0.8), Moment(2)],
        [False, True],
        [1, 5, 128],
        [0, 30],
    ),
    ids=str,
)
def test_it_is_the_hint_of_the_oracle(property: Elicitable, events: bool, most_full: int, late: int) -> None:
    """With and without a base, one by one and late, events and numbers, more weights than a matrix has room for."""
    rng = np.random.default_rng(most_full + late)
    state = OnlineRegression(n_features=2, most_full=most_full).start(property, 4)
    naive, (low, high) = NaiveHint(property, 4, 2, most_full), property.domain
    waiting: list[tuple[int, int, Any]] = []
    apart = 0.0
    for t in range(120):
        x = rng.integers(-2, 3, 4) / 2.0 * (rng.random(4) < 0.6)
        features = rng.normal(3.0, 2.0, 2)
        chance = float(np.clip(0.35 + 0.2 * np.sin(t / 10.0) + 0.2 * x[0] + 0.05 * features[0], 0.02, 0.98))
        base = None if rng.random() < 0.2 else low + (high - low) * float(np.clip(chance + rng.normal() / 10, 0.0, 1.0))
        unit = float(rng.random() < chance) if events or isinstance(property, Probability) else rng.random() * chance
        given = (sparse(x), features, base)
        said, scores = state.said(*given)
        spoken = naive.say(x.tolist(), features.tolist(), base)
        assert said == pytest.approx(spoken.hint, rel=1e-9, abs=1e-9 * (high - low))
        apart = max(apart, abs(said - base) / (high - low) if base is not None else 0.0)
        due = t + int(rng.integers(0, late + 1))
        waiting.append((due, t, (given, outcome_of(property, unit), said, scores, spoken)))
        for item in sorted((item for item in waiting if item[0] <= t), key=lambda item: item[:2]):
            then, y, told, carried, heard = item[2]
            row, features, model = then
            state.update(row, features, model, y, told, carried)
            naive.learn(heard, y)
            waiting.remove(item)
    assert apart > 0.1


# Citizenship


@pytest.mark.parametrize("base", [-2.0, -1.7, 0.0, 0.3, 2.999, 3.0])
def test_starts_as_the_base_forecast(base: float) -> None:
    state = OnlineRegression().start(Expectile(0.7, low=-2.0, high=3.0), 4)
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
    events=st.booleans(),
    most_full=st.sampled_from([1, 4, 128]),
)
def test_forecasts_stay_finite_and_in_the_domain(
    data: st.DataObject, property: Elicitable, events: bool, most_full: int
) -> None:
    state = OnlineRegression(n_features=2, most_full=most_full).start(property, 3)
    unit = st.floats(0.0, 1.0)
    numbers = st.floats(-1e60, 1e60, allow_subnormal=True)
    for _ in range(20):
        row = sparse(np.array(data.draw(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3))))
        features = np.array(data.draw(st.tuples(numbers, numbers)))
        base = data.draw(st.one_of(st.none(), unit))
        low, high = property.domain
        base = None if base is None else low + (high - low) * base
        forecast = state.forecast(row, features, base)
        assert low <= forecast <= high
        label = property.low + (property.high - property.low) * data.draw(unit)
        if events or isinstance(property, Probability):
            label = property.high if label > 0.5 * (property.low + property.high) else property.low
        state.update(row, features, base, label)
    assert all(np.isfinite(array).all() for array in state.arrays().values())


# Configuration and bad input


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_features": -1}, {"n_features": 1.5}, {"n_features": True}, {"most_full": 0}, {"most_full": 1.5},
        {"most_full": True},
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
    for bad in (OnlineRegression().start(Mean(), 3).arrays(), missing, before | {"totals": np.full(18, np.nan)}):
        with pytest.raises(StateFileError):
            state.restore(bad)
    assert same(before, state.arrays())
