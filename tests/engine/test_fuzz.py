"""A hundred thousand odd inputs: each gives a right answer or a named error, and an error changes nothing.

`make test` throws a fortieth of them, `make thorough` all. The functions for errors have their share in
`audits/test_fuzz_audit.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import swapcal as sc
from fuzzing import FULL, NOT_NUMBERS, Meaning, Rng, Throw, all_mean, context, pick, play, scalar, table, vector
from swapcal.typing import Float64Array

pytestmark = [
    pytest.mark.filterwarnings("ignore::swapcal.errors.AtomsWarning"),
    pytest.mark.usefixtures("little_room"),
]

N = 4
ODD_JSON: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), 10**6, 2**31, 2**63,
    10**30, 10**400, "", "x", "0", "error", "clip", "\ud800", [], [0], {}, [[[[]]]], {"kind": "Mean"},
    {"kind": ["Mean"]}, {"kind": "Quantile", "level": 2}, {"kind": "Property", "name": "mine"},
    {"kind": "Linear", "n": 10**12, "radius": 1.0},
    {"kind": "Finite", "n": 10**9, "potential": {"kind": "Squint"}, "names": None},
]  # fmt: skip


def forecasters() -> list[sc.Forecaster]:
    waits: dict[str, Any] = {"max_pending": 64}
    squint, p_norm = (sc.Finite(N, potential=each) for each in (sc.potentials.Squint(), sc.potentials.PNorm()))
    learning: dict[str, Any] = {"bins": 5, "jitter": 0.1, "hint": sc.OnlineRegression(n_features=3), "levels": 2}
    return [
        sc.Forecaster(sc.Mean(), sc.Finite(N), horizon=200, levels=3, seed=1, **waits),
        sc.Forecaster(sc.Expectile(0.3, low=-5.0, high=5.0), sc.Linear(N, radius=0.5), seed=2, **waits),
        sc.Forecaster(sc.Quantile(0.7), squint, seed=3, **learning, **waits),
        sc.Forecaster(sc.Probability(), p_norm, seed=4, **waits),
    ]


def digest(forecaster: sc.Forecaster) -> Any:
    counters, arrays = forecaster.state.snapshot()
    return counters, {name: (array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def unsound(forecaster: sc.Forecaster, values: list[float]) -> str | None:
    """What is wrong with forecasts, or with a state in which something is not finite."""
    low, high = forecaster.property.domain
    if not all(isinstance(value, float) and low <= value <= high for value in values):
        return f"the forecasts {values!r}"
    finite = all(np.isfinite(array).all() for array in forecaster.state.snapshot()[1].values())
    return None if finite else "the state is no longer finite"


def thrown(name: str, throw: Callable[[sc.Forecaster, Rng], Throw]) -> None:
    targets = forecasters()
    play(name, throw, targets, digest)
    assert max(each.state.values.capacity for each in targets) > 12, "none has grown"


def good_label(forecaster: sc.Forecaster, rng: Rng) -> float:
    low, high = forecaster.property.low, forecaster.property.high
    whole = isinstance(forecaster.property, sc.Probability) and rng.random() < 0.5  # the others are soft labels
    return float(rng.choice([low, high])) if whole else rng.uniform(low, high)


def good_features(forecaster: sc.Forecaster, rng: Rng) -> Float64Array | None:
    return rng.normal(size=3) if forecaster.hint is not None else None


NOTHING = Meaning(None, ())


def test_predict() -> None:
    assert sum(FULL.values()) >= 100_000

    def throw(forecaster: sc.Forecaster, rng: Rng) -> Throw:
        hint = NOTHING if rng.random() < 0.6 else scalar(rng, *forecaster.property.domain)
        hint = NOTHING if hint.given is None else hint
        clean = good_features(forecaster, rng)
        x, features = context(rng, N), Meaning(clean, ())
        if clean is None:
            features = features if rng.random() < 0.95 else Meaning([0.5], None)
        elif rng.random() < 0.3:
            features = vector(rng, clean)
        meant = all_mean(x, hint, features)

        def wrong(forecast: sc.Forecast) -> str | None:
            read, indices = np.zeros(N), np.array(forecast.indices, dtype=int)
            read[indices[indices < N]] = np.array(forecast.values)[indices < N]
            if meant and isinstance(forecaster.hypotheses, sc.Finite) and not np.array_equal(read, x.means):
                return f"read as {read!r}"
            if isinstance(forecaster.hypotheses, sc.Linear) and np.linalg.norm(read) > 1.0 + 1e-12:
                return f"read as {read!r}"
            found = unsound(forecaster, [float(forecast)])
            if rng.random() < 0.3:
                forecaster.update(forecast, good_label(forecaster, rng))
            return found

        given = (x.given, hint.given, features.given)
        return Throw(given, lambda: forecaster.predict(*given[:2], features=given[2]), meant, wrong)

    thrown("predict", throw)


def odd_forecast(rng: Rng, forecast: sc.Forecast) -> Callable[[], Any]:
    """Something that is not quite the forecast that was made."""
    name = pick(rng, [field.name for field in dataclasses.fields(forecast)])
    spoiled = [0.3, -5, 1e300, [0.5] * 3, [0, 1, 2, 3], [3, 1], [2**62], [-1], (0.5, 2.0)]
    value = pick(rng, [*NOT_NUMBERS, *ODD_JSON, *spoiled])
    whole, text = forecast.to_dict(), forecast.to_json()
    kept = {key: entry for key, entry in whole.items() if key != name}
    at, size = int(rng.integers(len(text))), int(rng.integers(0, 4))
    torn = text[:at] + "".join(rng.choice(list('0123456789.eE+-"[]{}, nul'), size)) + text[at + size // 2 :]
    scalars = ("value", "round", "forecaster", "other", "probability", "evidence_at", "hint", "base")
    odd: list[Callable[[], Any]] = [
        lambda: sc.Forecast.from_dict({**whole, name: value}),
        lambda: sc.Forecast.from_dict(kept if rng.random() < 0.5 else {**whole, "more": value}),
        lambda: sc.Forecast.from_json(torn if rng.random() < 0.8 else torn.encode()),
        lambda: dataclasses.replace(forecast, **{name: value}) if name in scalars else sc.Forecast.from_json(value),
    ]
    made: Callable[[], Any] = pick(rng, odd)
    return made


def test_update() -> None:
    def throw(forecaster: sc.Forecaster, rng: Rng) -> Throw:
        hint = float(rng.uniform(*forecaster.property.domain)) if rng.random() < 0.3 else None
        forecast = forecaster.predict(rng.uniform(-0.5, 0.5, N), hint, features=good_features(forecaster, rng))
        y, kind = scalar(rng, forecaster.property.low, forecaster.property.high), rng.random()
        made: Callable[[], Any] = lambda: forecast  # noqa: E731
        meant = all_mean(y)
        if kind > 0.55:
            made, meant = odd_forecast(rng, forecast), None
            y = Meaning(good_label(forecaster, rng), ()) if rng.random() < 0.8 else y
        elif kind > 0.5:
            other = pick(rng, NOT_NUMBERS)
            made, meant = lambda: other, False
        return Throw(
            (forecast, y.given),
            lambda: forecaster.update(made(), y.given),
            meant,
            lambda _: unsound(forecaster, [float(forecast)]),
        )

    thrown("update", throw)


def test_run() -> None:
    def throw(forecaster: sc.Forecaster, rng: Rng) -> Throw:
        n_rows = int(rng.integers(1, 4))
        x = rng.uniform(-0.5, 0.5, (n_rows, N)) * (rng.random((n_rows, N)) < 0.7)
        labels = np.array([good_label(forecaster, rng) for _ in range(n_rows)])
        hints = rng.uniform(*forecaster.property.domain, n_rows) if rng.random() < 0.3 else None
        clean = rng.normal(size=(n_rows, 3)) if forecaster.hint is not None else None
        X = table(rng, x) if rng.random() < 0.6 else Meaning(x, x)
        y = vector(rng, labels) if rng.random() < 0.4 else Meaning(labels, labels)
        h = vector(rng, hints) if hints is not None and rng.random() < 0.4 else Meaning(hints, ())
        f = Meaning(clean, ()) if clean is None or rng.random() < 0.8 else table(rng, clean)
        if f.means is None or (f.given is not None and not isinstance(f.given, (np.ndarray, list))):
            f = f._replace(doubtful=True)  # 2.5 is a feature like any other; sparse ones may be refused
        if isinstance(forecaster.hypotheses, sc.Linear) and _finite(X.given, x.shape) and X.means is None:
            X = X._replace(doubtful=True)  # long ones are cut
        meant, before = all_mean(X, y, h, f), forecaster.state.snapshot()

        def wrong(found: Float64Array) -> str | None:
            if meant:
                forecaster.state.restore(forecaster.rules, *before)
                forecaster._engine.assemble()
                again = forecaster.run(x, labels, hints, features=clean)
                if not np.array_equal(found, again):
                    return f"the forecasts {found!r} and not {again!r}"
            return unsound(forecaster, found.tolist())

        given = (X.given, y.given, h.given, f.given)
        return Throw(given, lambda: forecaster.run(*given[:3], features=given[3]), meant, wrong)

    thrown("run", throw)


def _finite(x: Any, shape: tuple[int, ...]) -> bool:
    plain = isinstance(x, np.ndarray) and x.dtype == float and x.shape == shape
    return plain and bool(np.isfinite(x).all())


def test_forecasts_made_by_hand_and_numbers_too_long_to_print() -> None:
    forecaster = forecasters()[0]
    forecast = forecaster.predict([0.5] * N)
    entries: Any = ("x",) * N
    with pytest.raises(sc.SwapcalError):
        dataclasses.replace(forecast, context=entries)
    for odd in (dataclasses.replace(forecast, context=bytes(15) + b"x" * 17), 10**5000):
        with pytest.raises(sc.SwapcalError):
            forecaster.update(odd, 0.5)  # type: ignore[arg-type]
