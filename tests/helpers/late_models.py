"""One of every model, a stream for it, and the naive loop that learns outcomes when they are due."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import swapcal as sc

__all__ = ["MODELS", "Stream", "learned_before", "loop", "model", "rows", "stream", "values"]


class Stream(NamedTuple):
    """Contexts, outcomes, the model's own forecasts, when outcomes are known, weights, and who never has one."""

    x: Any
    y: Any
    hints: Any
    known: Any
    weights: Any
    never: Any


def _forecaster(**settings: Any) -> Any:
    return sc.Forecaster(sc.Mean(), sc.Finite(3), seed=3, **settings)


MODELS: dict[str, Callable[..., Any]] = {
    "forecaster": _forecaster,
    "learning forecaster": lambda **settings: _forecaster(hint=sc.OnlineRegression(), **settings),
    "quantile": lambda **settings: sc.Forecaster(sc.Quantile(0.8), sc.Finite(3), seed=3, jitter=0.01, **settings),
    "quantiles": lambda **settings: sc.Quantiles([0.2, 0.5, 0.9], sc.Finite(3), seed=4, **settings),
    "interval": lambda **settings: sc.Interval(0.8, sc.Finite(3), seed=5, **settings),
    "classes": lambda **settings: sc.Classes(3, sc.Finite(3), seed=6, **settings),
    "prediction set": lambda **settings: sc.PredictionSet(0.8, 3, sc.Finite(3), seed=7, **settings),
}


def model(name: str, **settings: Any) -> Any:
    return MODELS[name](**settings)


def stream(name: str, n: int = 120, seed: int = 0) -> Stream:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.random(n) < 0.5, rng.random(n) < 0.3]).astype(float)
    if name in ("classes", "prediction set"):
        hints: Any = rng.dirichlet([2.0, 1.0, 0.5], n)
        y = rng.integers(0, 3, n).astype(float)
    elif name in ("quantiles", "interval"):
        hints = rng.normal(20.0, 5.0, n)
        y = hints + rng.normal(size=n) * (1.0 + 2.0 * x[:, 1])
    else:
        hints = rng.uniform(0.1, 0.9, n)
        y = np.clip(hints + 0.2 * (x[:, 1] - 0.5) + 0.2 * rng.normal(size=n), 0.0, 1.0)
    known = np.arange(n) + rng.integers(1, 25, n).astype(float)
    return Stream(x, y, hints, known, rng.choice([0.0, 0.5, 1.0], n), rng.random(n) < 0.15)


def values(forecast: Any) -> list[float]:
    """The numbers of a forecast that `run` gives."""
    for name in ("probabilities", "members", "values"):
        if isinstance(getattr(forecast, name, None), tuple) and not isinstance(forecast, sc.Forecast):
            return [float(each) for each in getattr(forecast, name)]
    return [forecast.lower, forecast.upper] if hasattr(forecast, "lower") else [float(forecast)]


def learned_before(row: int, known: Sequence[float], done: set[int], order: str, settle: int | None) -> list[int]:
    """Which rows are learned before this one: each of the earlier ones is asked by itself. NaN: its outcome is out."""

    def holds_up(earlier: int) -> bool:
        come = earlier in done or known[earlier] <= row
        return not come and (settle is None or earlier + settle > row)

    due = [t for t in range(row) if t not in done and known[t] <= row]
    if order == "arrival":
        return due
    return [t for t in due if not any(holds_up(earlier) for earlier in range(t))]


def loop(
    own: Any, some: Stream, *, order: str = "arrival", settle: int | None = None, never: Any = None, weights: Any = None
) -> list[list[float]]:
    """`predict`, `update` and `forget`, row by row; what never has an outcome is forgotten at once."""
    done: set[int] = set()
    forecasts: list[Any] = []
    out = []
    for row in range(len(some.y)):
        for t in learned_before(row, some.known.tolist(), done, order, settle):
            own.update(forecasts[t], _label(own, some.y[t]))
            done.add(t)
        share = 1.0 if weights is None or not weights[row] else weights[row]
        forecasts.append(own.predict(some.x[row] * share, some.hints[row]))
        out.append(values(forecasts[row]))
        gone = (never is not None and never[row]) or (weights is not None and not weights[row])
        if gone:
            own.forget(forecasts[row])
            done.add(row)
    return out


def _label(own: Any, y: float) -> Any:
    return int(y) if isinstance(own, (sc.Classes, sc.PredictionSet)) else float(y)


def rows(array: Any) -> list[list[float]]:
    """What `run` gave, as `loop` gives it."""
    return np.asarray(array, dtype=float).reshape(len(array), -1).tolist()
