"""A hundred thousand odd inputs: each gives a right answer or a named error, and an error changes nothing.

`make test` throws a fortieth of them, `make thorough` all.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuzzing
import swapcal as sc

ODD_JSON: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), 10**6, 2**31, 2**63,
    10**30, 10**400, "", "x", "0", "error", "clip", "\ud800", [], [0], {}, [[[[]]]], {"kind": "Mean"},
    {"kind": ["Mean"]}, {"kind": "Quantile", "level": 2}, {"kind": "Property", "name": "mine"},
    {"kind": "Linear", "n": 10**12, "radius": 1.0},
    {"kind": "Finite", "n": 10**9, "potential": {"kind": "Squint"}, "names": None},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_predict() -> None:
    faults, forecasters = fuzzing.Faults(), [make() for make in fuzzing.MAKERS]
    assert sum(fuzzing.FULL.values()) >= 100_000
    for seed, rng in fuzzing.cases("predict"):
        forecaster = forecasters[seed % len(forecasters)]
        x, hint, features = (
            fuzzing.context(rng, fuzzing.N),
            fuzzing.odd_hint(forecaster, rng),
            fuzzing.odd_features(forecaster, rng),
        )
        given = (x.given, hint.given, features.given)
        call = functools.partial(forecaster.predict, x.given, hint.given, features=features.given)
        meant = fuzzing.all_mean(x, hint, features)
        forecast = fuzzing.attempt(
            faults, seed, given, functools.partial(fuzzing.digest, forecaster), call, meant=meant
        )
        if forecast is None:
            continue
        if not fuzzing.in_domain(forecaster.property, float(forecast)) or not fuzzing.is_sound(forecaster):
            faults.note(seed, given, f"the forecast {forecast!r}")
        read = np.zeros(fuzzing.N)
        own = np.array(forecast.indices, dtype=int) < fuzzing.N
        read[np.array(forecast.indices, dtype=int)[own]] = np.array(forecast.values)[own]
        if meant and isinstance(forecaster.hypotheses, sc.Finite) and not np.array_equal(read, x.means):
            faults.note(seed, given, f"read as {read!r}")
        if isinstance(forecaster.hypotheses, sc.Linear) and np.linalg.norm(read) > 1.0 + 1e-12:
            faults.note(seed, given, f"read as {read!r}")
        if rng.random() < 0.3:
            forecaster.update(forecast, fuzzing.good_label(forecaster, rng))
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(fuzzing.PLAN["predict"])


def same(value: Any) -> Any:
    return value


def odd_forecast(rng: fuzzing.Rng, forecast: sc.Forecast) -> Callable[[], Any]:
    """Something that is not quite the forecast that was made."""
    kind = int(rng.integers(4))
    fields = [field.name for field in dataclasses.fields(forecast)]
    name = fields[int(rng.integers(len(fields)))]
    spoiled = [0.3, -5, 1e300, [0.5] * 3, [0, 1, 2, 3], [3, 1], [2**62], [-1], (0.5, 2.0)]
    values: list[Any] = [*fuzzing.NOT_NUMBERS, *ODD_JSON, *spoiled]
    value = values[int(rng.integers(len(values)))]
    if kind == 0:
        return lambda: sc.Forecast.from_dict({**forecast.to_dict(), name: value})
    if kind == 1:
        kept = {key: entry for key, entry in forecast.to_dict().items() if key != name}
        return lambda: sc.Forecast.from_dict(kept if rng.random() < 0.5 else {**forecast.to_dict(), "more": value})
    if kind == 2:
        text = forecast.to_json()
        at, size = int(rng.integers(len(text))), int(rng.integers(0, 4))
        torn = text[:at] + "".join(rng.choice(list('0123456789.eE+-"[]{}, nul'), size)) + text[at + size // 2 :]
        return lambda: sc.Forecast.from_json(torn if rng.random() < 0.8 else torn.encode())
    scalars = ("value", "round", "forecaster", "other", "probability", "evidence_at", "hint", "base")
    if name not in scalars:
        return lambda: sc.Forecast.from_json(value)
    return lambda: dataclasses.replace(forecast, **{name: value})


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_update() -> None:
    faults, forecasters = fuzzing.Faults(), [make() for make in fuzzing.MAKERS]
    for seed, rng in fuzzing.cases("update"):
        forecaster = forecasters[seed % len(forecasters)]
        hint = float(rng.uniform(*forecaster.property.domain)) if rng.random() < 0.3 else None
        forecast = forecaster.predict(fuzzing.good_context(rng), hint, **fuzzing.options(forecaster, rng))
        y: fuzzing.Meaning = fuzzing.scalar(rng, forecaster.property.low, forecaster.property.high)
        kind, meant = rng.random(), None
        made: Callable[[], Any]
        if kind < 0.5:
            made, meant = functools.partial(same, forecast), fuzzing.all_mean(y)
            if isinstance(forecaster.property, sc.Probability) and y.means not in (None, 0.0, 1.0):
                meant = False
        elif kind < 0.55:
            wrong = fuzzing.NOT_NUMBERS[int(rng.integers(len(fuzzing.NOT_NUMBERS)))]
            made, meant = functools.partial(same, wrong), False
        else:
            y = fuzzing.Meaning(fuzzing.good_label(forecaster, rng), ()) if rng.random() < 0.8 else y
            made = odd_forecast(rng, forecast)

        def call(forecaster: sc.Forecaster = forecaster, made: Any = made, y: Any = y.given) -> bool:
            forecaster.update(made(), y)
            return True

        done = fuzzing.attempt(
            faults, seed, (forecast, y.given), functools.partial(fuzzing.digest, forecaster), call, meant=meant
        )
        if done and not fuzzing.is_sound(forecaster):
            faults.note(seed, y.given, "the state is no longer finite")
        if not done and forecaster.state.pending.flags[forecast.round % 64]:
            forecaster.update(forecast, fuzzing.good_label(forecaster, rng))
    for forecaster in forecasters:
        assert fuzzing.in_domain(
            forecaster.property, float(forecaster.predict(np.zeros(fuzzing.N), **fuzzing.options(forecaster, rng)))
        )
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(fuzzing.PLAN["update"])


@pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning")
@pytest.mark.usefixtures("little_room")
def test_run() -> None:
    faults, forecasters = fuzzing.Faults(), [make() for make in fuzzing.MAKERS]
    for seed, rng in fuzzing.cases("run"):
        forecaster = forecasters[seed % len(forecasters)]
        n_rows = int(rng.integers(1, 4))
        x = np.array([fuzzing.good_context(rng) for _ in range(n_rows)]) * (rng.random((n_rows, fuzzing.N)) < 0.7)
        labels = np.array([fuzzing.good_label(forecaster, rng) for _ in range(n_rows)])
        hints = rng.uniform(*forecaster.property.domain, n_rows)
        X, y = fuzzing.table(rng, x) if rng.random() < 0.6 else fuzzing.Meaning(x, x), fuzzing.Meaning(labels, labels)
        y = fuzzing.vector(rng, labels) if rng.random() < 0.4 else y
        h = (
            (fuzzing.vector(rng, hints) if rng.random() < 0.4 else fuzzing.Meaning(hints, hints))
            if rng.random() < 0.3
            else fuzzing.Meaning(None, ())
        )
        clean = rng.normal(size=(n_rows, 3)) if forecaster.hint is not None else None
        f = fuzzing.Meaning(clean, ()) if clean is None or rng.random() < 0.8 else fuzzing.table(rng, clean)
        arguments = (X.given, y.given, h.given)
        before = forecaster.state.snapshot()
        meant = fuzzing.all_mean(X, y, h, f)
        if h.given is None and isinstance(h.means, type(None)):
            meant = None  # no hints at all
        if isinstance(X.given, np.ndarray) and X.given.dtype == float and isinstance(forecaster.hypotheses, sc.Linear):
            meant = (
                None if fuzzing.shape_of(X.given) == x.shape and np.isfinite(X.given).all() else meant
            )  # long ones are cut
        if f.given is not None and not isinstance(f.given, (np.ndarray, list)):
            meant = None if meant else meant  # features are dense, sparse ones may be refused
        if f.given is not None and f.means is None and clean is not None and fuzzing.shape_of(f.given) == clean.shape:
            meant = None if fuzzing.all_mean(X, y, h) else meant  # 2.5 is a feature like any other
        call = functools.partial(forecaster.run, *arguments, features=f.given)
        found = fuzzing.attempt(
            faults, seed, (*arguments, f.given), functools.partial(fuzzing.digest, forecaster), call, meant=meant
        )
        if found is None:
            continue
        if not all(fuzzing.in_domain(forecaster.property, value) for value in found.tolist()) or not fuzzing.is_sound(
            forecaster
        ):
            faults.note(seed, arguments, f"the forecasts {found!r}")
        if meant:
            forecaster.state.restore(forecaster.rules, *before)
            forecaster._engine.assemble()
            again = forecaster.run(x, labels, None if h.given is None else hints, features=clean)
            if not np.array_equal(found, again):
                faults.note(seed, arguments, f"the forecasts {found!r} and not {again!r}")
    assert max(forecaster.state.values.capacity for forecaster in forecasters) > 12
    faults.verdict(fuzzing.PLAN["run"])


def test_forecasts_made_by_hand_and_numbers_too_long_to_print() -> None:
    forecaster = fuzzing.finite()
    forecast = forecaster.predict([0.5] * fuzzing.N)
    entries: Any = ("x",) * fuzzing.N
    with pytest.raises(sc.SwapcalError):
        dataclasses.replace(forecast, context=entries)
    for odd in (dataclasses.replace(forecast, context=bytes(15) + b"x" * 17), 10**5000):
        with pytest.raises(sc.SwapcalError):
            forecaster.update(odd, 0.5)  # type: ignore[arg-type]
