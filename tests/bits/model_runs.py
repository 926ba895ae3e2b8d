"""What rests on several forecasters: intervals, quantiles, classes, sets of classes, several steps ahead."""

from collections.abc import Callable
from typing import Any

import numpy as np

import swapcal as sc
from plays import Played, Run, Runs, numbers, reloaded

T, K = 260, 3


def line(seed: int = 3) -> dict[str, Any]:
    """Contexts, outcomes around a biased hint with noise that depends on the context, and units."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(T), rng.random(T) < 0.5, rng.random(T) < 0.3]).astype(float)
    hint = 20.0 + 5.0 * rng.normal(size=T)
    y = hint + 1.5 * x[:, 1] + rng.normal(size=T) * (1.0 + 3.0 * x[:, 2])
    return {"x": x, "y": y, "hint": hint, "unit": 1.0 + 2.0 * x[:, 2], "late": rng.integers(0, 30, T)}


def labels(seed: int = 4) -> dict[str, Any]:
    """Contexts, classes and a model's probabilities."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(T), rng.random(T) < 0.5]).astype(float)
    p = rng.dirichlet([2.0, 1.0, 0.5], T)
    true = 0.6 * p + 0.4 * np.where(x[:, 1:] > 0, [0.1, 0.2, 0.7], [0.6, 0.3, 0.1])
    y = (true.cumsum(axis=1) < rng.random(T)[:, None]).sum(axis=1).clip(0, K - 1)
    return {"x": x, "y": y, "p": p, "late": rng.integers(0, 20, T)}


def late(
    model: Any,
    predict: Callable[[Any, int], Any],
    values: Callable[[Any], Any],
    stream: dict[str, Any],
    *,
    forgets: bool = True,
) -> Played:
    """Events: outcomes late and in another order, some forgotten, saved in the middle."""
    due: dict[int, list[tuple[int, Any]]] = {}
    out = []
    for t in range(T):
        forecast = predict(model, t)
        out.append(np.asarray(values(forecast), dtype=float))
        due.setdefault(t + int(stream["late"][t]), []).append((t, forecast))
        for then, waiting in reversed(due.pop(t, [])):
            if forgets and then % 13 == 5:
                model.forget(waiting)
            else:
                model.update(waiting, stream["y"][then].item())
        if t in (10, 150):
            model = reloaded(model)
    return Played(numbers(*out, model.n_rounds))


def interval(functions: Any, hinted: bool, units: bool, **options: Any) -> Played:
    """`run`, and then the promise."""
    stream = line()
    model = sc.Interval(0.8, functions, seed=7, **options)
    ends = model.run(
        stream["x"], stream["y"], stream["hint"] if hinted else None, units=stream["unit"] if units else None
    )
    return Played(numbers(ends, model.expected(stream["x"][0], 20.0)), {"miscoverage": model.miscoverage(0.05)})


def interval_late(**options: Any) -> Played:
    stream = line()
    return late(
        sc.Interval(0.9, sc.Finite(3), seed=8, **options),
        lambda model, t: model.predict(stream["x"][t], float(stream["hint"][t])),
        lambda forecast: (forecast.lower, forecast.upper),
        stream,
    )


def interval_of_groups() -> Played:
    """Records, and forecasts that are stored as text until their outcomes come."""
    stream = line()
    model = sc.Interval(0.9, sc.Groups(["loud", ("loud", "odd")]), seed=9)
    out, stored = [], []
    for t in range(T):
        record = {"loud": bool(stream["x"][t, 2]), "odd": t % 2}
        forecast = model.predict(record, float(stream["hint"][t]))
        out.append([forecast.lower, forecast.upper])
        stored.append((forecast.to_json(), float(stream["y"][t])))
        if len(stored) == 3:
            for text, y in stored:
                model.update(type(forecast).from_json(text), y)
            stored = []
    return Played(numbers(*out))


def quantiles(functions: Any, hinted: bool, **options: Any) -> Played:
    """`run`, and the scores of the distributions through the quantiles."""
    stream = line()
    model = sc.Quantiles([0.1, 0.25, 0.5, 0.8, 0.95], functions, seed=7, spread=3.0, **options)
    values = model.run(stream["x"], stream["y"], stream["hint"] if hinted else None)
    through = [sc.PredictiveDistribution(model.levels, row) for row in values[::10].tolist()]
    scores = [
        (each.crps(y), each.cdf(y), each.quantile(0.3)) for each, y in zip(through, stream["y"][::10], strict=True)
    ]
    return Played(numbers(values, scores), {"miscoverage": model.miscoverage(0.05)})


def quantiles_late() -> Played:
    stream = line()
    return late(
        sc.Quantiles([0.2, 0.5, 0.9], sc.Linear(3, radius=2.0), seed=8, low=-20.0, high=60.0, max_pending=64),
        lambda model, t: model.predict(stream["x"][t], float(stream["hint"][t]), unit=float(stream["unit"][t])),
        lambda forecast: (*forecast.values, forecast.predictive.crps(20.0)),
        stream,
    )


def classes(hinted: bool, learn: bool, **options: Any) -> Played:
    stream = labels()
    model = sc.Classes(K, sc.Finite(2), seed=5, hint=sc.OnlineRegression() if learn else None, **options)
    p = model.run(stream["x"], stream["y"], stream["p"] if hinted else None)
    return Played(numbers(p, model.expected(stream["x"][0], stream["p"][0])), {"guarantee": model.guarantee(0.05)})


def classes_late() -> Played:
    stream = labels()
    return late(
        sc.Classes(K, sc.Finite(2), seed=6),
        lambda model, t: model.predict(stream["x"][t], stream["p"][t]),
        lambda forecast: (*forecast.probabilities, forecast.top, forecast.confidence),
        stream,
    )


def class_sets(learn: bool) -> Played:
    stream = labels()
    model = sc.PredictionSet(0.8, K, sc.Finite(2), seed=5, learn=learn)
    return Played(numbers(model.run(stream["x"], stream["y"], stream["p"])))


def class_sets_late() -> Played:
    stream = labels()
    return late(
        sc.PredictionSet(0.9, K, sc.Finite(2), seed=6),
        lambda model, t: model.predict(stream["x"][t], stream["p"][t]),
        lambda forecast: (*forecast.members, *forecast.scores, float(forecast.threshold)),
        stream,
        forgets=False,
    )


def ahead(make: Callable[[int, int], Any], values: Callable[[Any], Any], exact: bool, scale: float) -> Played:
    """Three steps ahead, at every time; some outcomes never come."""
    stream = line()
    steps = 3
    model: Any = sc.MultiHorizon(make, steps, exact=exact)
    out = []
    for t in range(T - steps):
        hints = [float(stream["hint"][t + h]) * scale for h in range(steps)]
        out += [values(each) for each in model.predict([stream["x"][t + h] for h in range(steps)], hints)]
        model.update(None if t % 17 == 4 else float(stream["y"][t]) * scale)
    return Played(numbers(*out, model.waiting))


def forecaster_for_step(step: int, turn: int) -> Any:
    return sc.Forecaster(sc.Mean(low=-1.0, high=2.0), sc.Finite(3), seed=10 * step + turn, outside="clip")


def interval_for_step(step: int, turn: int) -> Any:
    return sc.Interval(0.8, sc.Finite(3), seed=10 * step + turn)


def predictive() -> Played:
    """Distributions with values that repeat, and outcomes at, between and outside of the values."""
    rng = np.random.default_rng(2)
    out = []
    for _ in range(50):
        levels = np.sort(rng.choice(np.arange(1, 20) / 20.0, 6, replace=False))
        through = sc.PredictiveDistribution(levels.tolist(), np.sort(rng.integers(0, 8, 6)).astype(float).tolist())
        out += [
            [through.cdf(y), through.quantile(0.05 + y / 10.0), through.crps(y)] for y in (-1.0, 0.0, 2.5, 3.0, 8.0)
        ]
    return Played(numbers(out))


def runs() -> Runs:
    """Name and play of every run."""
    finite: Callable[[], Any] = lambda: sc.Finite(3)  # noqa: E731
    yield Run("interval: Finite, no hint", lambda: interval(finite(), False, False))
    yield Run("interval: Finite, hint", lambda: interval(finite(), True, False, horizon=T))
    yield Run("interval: Finite, hint, units", lambda: interval(finite(), True, True, spread=1.0))
    yield Run("interval: Finite, hint, not learning", lambda: interval(finite(), True, False, learn=False))
    yield Run(
        "interval: Linear, hint, range", lambda: interval(sc.Linear(3, radius=2.0), True, False, low=0.0, high=50.0)
    )
    yield Run("interval: late", lambda: interval_late(max_pending=128))
    yield Run("interval: late, not learning, spread", lambda: interval_late(learn=False, spread=2.0))
    yield Run("interval: Groups, stored forecasts", interval_of_groups)
    yield Run("quantiles: Finite, no hint", lambda: quantiles(finite(), False))
    yield Run("quantiles: Finite, hint", lambda: quantiles(finite(), True, horizon=T))
    yield Run("quantiles: Linear, hint, not learning", lambda: quantiles(sc.Linear(3), True, learn=False))
    yield Run("quantiles: late, Linear, units, range", quantiles_late)
    yield Run("predictive", predictive)
    yield Run("classes: no hint", lambda: classes(False, False))
    yield Run("classes: hint", lambda: classes(True, False, horizon=T))
    yield Run("classes: learning on a hint", lambda: classes(True, True))
    yield Run("classes: late", classes_late)
    yield Run("class sets: learning", lambda: class_sets(True))
    yield Run("class sets: not learning", lambda: class_sets(False))
    yield Run("class sets: late", class_sets_late)
    for exact in (False, True):
        turns = "in turns" if exact else "together"
        yield Run(f"ahead: forecasters, {turns}", lambda e=exact: ahead(forecaster_for_step, float, e, 0.03))  # type: ignore[misc]
        yield Run(
            f"ahead: intervals, {turns}",
            lambda e=exact: ahead(interval_for_step, lambda one: (one.lower, one.upper), e, 1.0),  # type: ignore[misc]
        )
