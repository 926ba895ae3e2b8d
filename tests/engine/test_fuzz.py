"""A hundred thousand odd inputs: each gives a right answer or a named error, and an error changes nothing.

`make test` throws a fifth of them, `make thorough` all.
"""

import dataclasses
import functools
import io
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swapcal as sc
from effort import some
from fuzzing import (
    FULL,
    MAKERS,
    NOT_NUMBERS,
    PLAN,
    Faults,
    Meaning,
    N,
    Rng,
    all_mean,
    attempt,
    cases,
    context,
    digest,
    finite,
    good_context,
    good_label,
    in_domain,
    is_sound,
    learning,
    odd_features,
    odd_hint,
    options,
    scalar,
    shape_of,
    table,
    vector,
)

ODD_JSON: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    1.5,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    10**6,
    2**31,
    2**63,
    10**30,
    10**400,
    "",
    "x",
    "0",
    "error",
    "clip",
    "\ud800",
    [],
    [0],
    {},
    {"kind": "Mean"},
    {"kind": "Finite", "n": 10**9, "potential": {"kind": "Squint"}, "names": None},
    {"kind": "Finite", "n": 4, "potential": {"kind": "PNorm", "p": 60.0}, "names": None},
    {"kind": "Linear", "n": 10**12, "radius": 1.0},
    {"kind": "OnlineRegression", "n_features": 10**12, "rates": None, "link": None},
    {"kind": "OnlineRegression", "n_features": 0, "rates": [1e308] * 3, "link": None},
    {"kind": "Quantile", "level": 2},
    {"kind": "Property", "name": "mine"},
    {"kind": ["Mean"]},
    [[[[]]]],
]


def test_the_plan_is_a_hundred_thousand_inputs() -> None:
    assert sum(FULL.values()) >= 100_000


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_predict() -> None:
    faults, forecasters = Faults(), [make() for make in MAKERS]
    for seed, rng in cases("predict"):
        forecaster = forecasters[seed % len(forecasters)]
        x, hint, features = context(rng, N), odd_hint(forecaster, rng), odd_features(forecaster, rng)
        given = (x.given, hint.given, features.given)
        call = functools.partial(forecaster.predict, x.given, hint.given, features=features.given)
        meant = all_mean(x, hint, features)
        forecast = attempt(faults, seed, given, functools.partial(digest, forecaster), call, meant=meant)
        if forecast is None:
            continue
        if not in_domain(forecaster.property, float(forecast)) or not is_sound(forecaster):
            faults.note(seed, given, f"the forecast {forecast!r}")
        read = np.zeros(N)
        own = np.array(forecast.indices, dtype=int) < N
        read[np.array(forecast.indices, dtype=int)[own]] = np.array(forecast.values)[own]
        if meant and isinstance(forecaster.hypotheses, sc.Finite) and not np.array_equal(read, x.means):
            faults.note(seed, given, f"read as {read!r}")
        if isinstance(forecaster.hypotheses, sc.Linear) and np.linalg.norm(read) > 1.0 + 1e-12:
            faults.note(seed, given, f"read as {read!r}")
        if rng.random() < 0.3:
            forecaster.update(forecast, good_label(forecaster, rng))
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(PLAN["predict"])


def same(value: Any) -> Any:
    return value


def odd_forecast(rng: Rng, forecast: sc.Forecast) -> Callable[[], Any]:
    """Something that is not quite the forecast that was made."""
    kind = int(rng.integers(4))
    fields = [field.name for field in dataclasses.fields(forecast)]
    name = fields[int(rng.integers(len(fields)))]
    values: list[Any] = [
        *NOT_NUMBERS,
        *ODD_JSON,
        0.3,
        -5,
        1e300,
        [0.5] * 3,
        [0, 1, 2, 3],
        [3, 1],
        [2**62],
        [-1],
        (0.5, 2.0),
    ]
    value = values[int(rng.integers(len(values)))]
    if kind == 0:
        return lambda: sc.Forecast.from_dict({**forecast.to_dict(), name: value})
    if kind == 1:
        kept = {key: entry for key, entry in forecast.to_dict().items() if key != name}
        return lambda: sc.Forecast.from_dict(kept if rng.random() < 0.5 else {**forecast.to_dict(), "more": value})
    if kind == 2:
        text = forecast.to_json()
        at, size = int(rng.integers(len(text))), int(rng.integers(0, 4))
        spoiled = text[:at] + "".join(rng.choice(list('0123456789.eE+-"[]{}, nul'), size)) + text[at + size // 2 :]
        return lambda: sc.Forecast.from_json(spoiled if rng.random() < 0.8 else spoiled.encode())
    scalars = ("value", "round", "forecaster", "other", "probability", "evidence_at", "hint", "base")
    if name not in scalars:
        return lambda: sc.Forecast.from_json(value)
    return lambda: dataclasses.replace(forecast, **{name: value})


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_update() -> None:
    faults, forecasters = Faults(), [make() for make in MAKERS]
    for seed, rng in cases("update"):
        forecaster = forecasters[seed % len(forecasters)]
        hint = float(rng.uniform(*forecaster.property.domain)) if rng.random() < 0.3 else None
        forecast = forecaster.predict(good_context(rng), hint, **options(forecaster, rng))
        y: Meaning = scalar(rng, forecaster.property.low, forecaster.property.high)
        kind, meant = rng.random(), None
        made: Callable[[], Any]
        if kind < 0.5:
            made, meant = functools.partial(same, forecast), all_mean(y)
            if isinstance(forecaster.property, sc.Probability) and y.means not in (None, 0.0, 1.0):
                meant = False
        elif kind < 0.55:
            wrong = NOT_NUMBERS[int(rng.integers(len(NOT_NUMBERS)))]
            made, meant = functools.partial(same, wrong), False
        else:
            y = Meaning(good_label(forecaster, rng), ()) if rng.random() < 0.8 else y
            made = odd_forecast(rng, forecast)

        def call(forecaster: sc.Forecaster = forecaster, made: Any = made, y: Any = y.given) -> bool:
            forecaster.update(made(), y)
            return True

        done = attempt(faults, seed, (forecast, y.given), functools.partial(digest, forecaster), call, meant=meant)
        if done and not is_sound(forecaster):
            faults.note(seed, y.given, "the state is no longer finite")
        if not done and forecaster.state.pending.flags[forecast.round % 64]:
            forecaster.update(forecast, good_label(forecaster, rng))
    for forecaster in forecasters:
        assert in_domain(forecaster.property, float(forecaster.predict(np.zeros(N), **options(forecaster, rng))))
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(PLAN["update"])


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_run() -> None:
    faults, forecasters = Faults(), [make() for make in MAKERS]
    for seed, rng in cases("run"):
        forecaster = forecasters[seed % len(forecasters)]
        n_rows = int(rng.integers(1, 4))
        x = np.array([good_context(rng) for _ in range(n_rows)]) * (rng.random((n_rows, N)) < 0.7)
        labels = np.array([good_label(forecaster, rng) for _ in range(n_rows)])
        hints = rng.uniform(*forecaster.property.domain, n_rows)
        X, y = table(rng, x) if rng.random() < 0.6 else Meaning(x, x), Meaning(labels, labels)
        y = vector(rng, labels) if rng.random() < 0.4 else y
        h = (
            (vector(rng, hints) if rng.random() < 0.4 else Meaning(hints, hints))
            if rng.random() < 0.3
            else Meaning(None, ())
        )
        clean = rng.normal(size=(n_rows, 3)) if forecaster.hint is not None else None
        f = Meaning(clean, ()) if clean is None or rng.random() < 0.8 else table(rng, clean)
        arguments = (X.given, y.given, h.given)
        before = forecaster.state.snapshot()
        meant = all_mean(X, y, h, f)
        if h.given is None and isinstance(h.means, type(None)):
            meant = None  # no hints at all
        if isinstance(X.given, np.ndarray) and X.given.dtype == float and isinstance(forecaster.hypotheses, sc.Linear):
            meant = None if shape_of(X.given) == x.shape and np.isfinite(X.given).all() else meant  # long ones are cut
        if f.given is not None and not isinstance(f.given, (np.ndarray, list)):
            meant = None if meant else meant  # features are dense, sparse ones may be refused
        if f.given is not None and f.means is None and clean is not None and shape_of(f.given) == clean.shape:
            meant = None if all_mean(X, y, h) else meant  # 2.5 is a feature like any other
        call = functools.partial(forecaster.run, *arguments, features=f.given)
        found = attempt(faults, seed, (*arguments, f.given), functools.partial(digest, forecaster), call, meant=meant)
        if found is None:
            continue
        if not all(in_domain(forecaster.property, value) for value in found.tolist()) or not is_sound(forecaster):
            faults.note(seed, arguments, f"the forecasts {found!r}")
        if meant:
            forecaster.state.restore(forecaster.rules, *before)
            forecaster._engine.assemble()
            again = forecaster.run(x, labels, None if h.given is None else hints, features=clean)
            if not np.array_equal(found, again):
                faults.note(seed, arguments, f"the forecasts {found!r} and not {again!r}")
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(PLAN["run"])


def is_usable(forecaster: sc.Forecaster) -> bool:
    """Whether a loaded forecaster goes on: forecasts, learns, knows its error and bound, and can be saved."""
    rng = np.random.default_rng(0)
    features: dict[str, Any] = {} if forecaster.hint is None else {"features": np.zeros(forecaster.hint.n_features)}
    values = []
    for _ in range(3):
        forecast = forecaster.predict(np.full(forecaster.hypotheses.n, 0.1), **features)
        low, high = forecaster.property.low, forecaster.property.high
        forecaster.update(forecast, float(rng.choice([low, high])))
        values.append(float(forecast))
    sound = all(in_domain(forecaster.property, value) for value in values) and is_sound(forecaster)
    forecaster.save(io.BytesIO())
    return sound and math.isfinite(forecaster.error()) and math.isfinite(forecaster.guarantee(0.05))


def test_odd_paths(tmp_path: Path) -> None:
    odd: list[Any] = [
        None,
        5,
        0.5,
        "",
        "\x00",
        b"x",
        tmp_path,
        tmp_path / "none",
        [],
        {},
        object(),
        io.BytesIO(),
        io.StringIO(),
    ]
    for path in odd:
        with pytest.raises(sc.StateFileError):
            sc.Forecaster.load(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=some(300))
@given(name=st.sampled_from([field.name for field in dataclasses.fields(sc.Forecast)]), value=json_values)
def test_stored_forecasts_with_any_json_in_a_field(name: str, value: Any) -> None:
    forecaster = learning()
    forecast = forecaster.predict(np.full(N, 0.5), 0.4, features=[1.0, 2.0, 3.0])
    before = digest(forecaster)
    try:
        stored = sc.Forecast.from_json(json.dumps({**forecast.to_dict(), name: value}))
        forecaster.update(stored, 0.3)
    except sc.SwapcalError:
        assert digest(forecaster) == before
    assert is_sound(forecaster)


anything = st.one_of(
    json_values,
    st.binary(max_size=8),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.datetimes(),
    st.timedeltas(),
    st.lists(st.floats(), min_size=N, max_size=N),
    st.lists(st.floats(-1.0, 1.0, width=16), min_size=N, max_size=N),
    st.dictionaries(st.integers(-2, N + 1), st.floats(-1.5, 1.5), max_size=N),
    st.tuples(st.lists(st.integers(-1, N), max_size=3), st.lists(st.floats(-1.0, 1.0), max_size=3)),
)


@settings(max_examples=some(500))
@given(x=anything, hint=anything, y=anything)
def test_anything_as_context_hint_and_label(x: Any, hint: Any, y: Any) -> None:
    forecaster = finite()
    before = digest(forecaster)
    try:
        forecast = forecaster.predict(x, hint)
    except sc.SwapcalError:
        assert digest(forecaster) == before
        forecast = forecaster.predict([0.5] * N)
    assert in_domain(forecaster.property, float(forecast))
    before = digest(forecaster)
    try:
        forecaster.update(forecast, y)
    except sc.SwapcalError:
        assert digest(forecaster) == before
    assert is_sound(forecaster)


def test_no_warning_escapes() -> None:
    """Filters of pytest turn warnings into errors above; here they are on, and none is raised beside the error."""
    forecaster = finite()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for x in ([0.1, np.ma.masked, 0.1, 0.1], np.ones(N) * 1j, [np.longdouble("1e4000")] * N, np.zeros(N, "M8[ns]")):
            with pytest.raises(sc.InvalidInput):
                forecaster.predict(x)
    assert not raised


def test_forecasts_made_by_hand_and_numbers_too_long_to_print() -> None:
    forecaster = finite()
    forecast = forecaster.predict([0.5] * N)
    entries: Any = ("x",) * N
    with pytest.raises(sc.SwapcalError):
        dataclasses.replace(forecast, context=entries)
    for odd in (dataclasses.replace(forecast, context=bytes(15) + b"x" * 17), 10**5000):
        with pytest.raises(sc.SwapcalError):
            forecaster.update(odd, 0.5)  # type: ignore[arg-type]
