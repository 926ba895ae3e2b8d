"""Short streams whose outcomes come late, and the loop that plays them one by one."""

import io
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.simulate import streams

__all__ = ["PROPERTIES", "data", "late_by", "looped"]

PROPERTIES: dict[str, Any] = {
    "mean": sc.Mean(low=-1.0, high=3.0),
    "probability": sc.Probability(),
    "quantile": sc.Quantile(0.9),
    "expectile": sc.Expectile(0.2),
    "moment": sc.Moment(2, low=-1.0, high=2.0),
    "own": sc.Property(lambda p, y: p - y, lipschitz=1.0),
}


def data(property: Any, n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = (rng.random((n, 4)) < 0.5).astype(float)
    x[:, 0] = 1.0
    chance = np.clip(0.2 + 0.5 * x[:, 1] * x[:, 2], 0.0, 1.0)
    unit = (rng.random(n) < chance).astype(float)
    if not isinstance(property, sc.Probability):
        unit = np.clip(chance + 0.4 * (rng.random(n) - 0.5), 0.0, 1.0)
    low, high = property.domain
    return x, property.low + (property.high - property.low) * unit, low + (high - low) * (0.1 + 0.7 * chance)


def late_by(kind: str, y: Any) -> Any:
    n = len(y)
    if kind == "fixed":
        return streams.fixed(n, 40)
    if kind == "geometric":
        return streams.geometric(n, 25.0, 1)
    if kind == "by outcome":
        return streams.by_outcome(y, 1.0, 150.0, 1)
    return np.arange(n) + np.where(np.random.default_rng(2).random(n) < 0.5, 1.0, 90.0)


def looped(forecaster: sc.Forecaster, x: Any, y: Any, h: Any, known: Any, save_at: int) -> tuple[Any, sc.Forecaster]:
    """`predict` and `update`; in the middle all that is out goes through JSON, and the forecaster through a file."""
    order = np.argsort(known, kind="stable")
    waiting: dict[int, sc.Forecast] = {}
    shown, k = np.empty(len(y)), 0
    for t in range(len(y)):
        while k < len(y) and known[order[k]] <= t:
            forecaster.update(waiting.pop(int(order[k])), float(y[order[k]]))
            k += 1
        waiting[t] = forecaster.predict(x[t], float(h[t]))
        shown[t] = float(waiting[t])
        if t == save_at:
            file = io.BytesIO()
            forecaster.save(file)
            file.seek(0)
            own = forecaster.property if isinstance(forecaster.property, sc.Property) else None
            forecaster = sc.Forecaster.load(file, property=own)
            waiting = {key: sc.Forecast.from_json(each.to_json()) for key, each in waiting.items()}
    return shown, forecaster
