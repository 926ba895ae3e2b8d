"""Streams and settings on which two ways to say the same thing are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import swapcal as sc
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Squint
from swapcal.protocols import Elicitable, Hypotheses
from swapcal.typing import Float64Array

N = 4
POTENTIALS: dict[str, Potential] = {
    "AdaNormalHedge": AdaNormalHedge(),
    "Exponential": Exponential(),
    "Squint": Squint(),
    "PNorm": PNorm(3.0),
}
CLASSES = [*POTENTIALS, "Linear"]


def hypotheses_of(kind: str, n: int = N) -> Hypotheses:
    return sc.Linear(n) if kind == "Linear" else sc.Finite(n, potential=POTENTIALS[kind])


@dataclass(frozen=True)
class Stream:
    x: Float64Array
    y: Float64Array
    hints: Float64Array
    features: Float64Array

    def __len__(self) -> int:
        return len(self.y)


def stream_of(n_rounds: int, seed: int, *, n: int = N) -> Stream:
    """Two active functions a round, so that sums do not depend on their order; everything is a multiple of 1/64."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_rounds, n))
    for row in x:
        row[rng.choice(n, 2, replace=False)] = rng.choice([1.0, 0.5, -0.25], 2) * 0.625
    center = 0.5 + 0.4 * x[:, 0] + 0.2 * np.sin(np.arange(n_rounds) / 50.0)
    y = np.round(64 * np.clip(center + 0.2 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 64
    hints = np.round(32 * np.clip(center + 0.1 * rng.standard_normal(n_rounds), 0.0, 1.0)) / 32
    return Stream(x, y, hints, rng.standard_normal((n_rounds, 2)))


def states(forecaster: sc.Forecaster) -> dict[str, Any]:
    """All that changes from round to round, but for the name the forecaster goes by."""
    counters, arrays = forecaster.state.snapshot()
    return {**{k: v for k, v in counters.items() if k not in ("identity", "key")}, **arrays}


def assert_same_state(one: sc.Forecaster, two: sc.Forecaster) -> None:
    first, second = states(one), states(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert np.array_equal(value, second[name]), name


@dataclass(frozen=True)
class Setting:
    """A forecaster with all that it is fed."""

    property: Elicitable
    hypotheses: Hypotheses
    options: dict[str, Any]
    hinted: bool = False

    def forecaster(self) -> sc.Forecaster:
        return sc.Forecaster(self.property, self.hypotheses, seed=3, **self.options)

    def feed(self, stream: Stream, t: int) -> dict[str, Any]:
        features = None if self.options.get("hint") is None else stream.features[t]
        return {"hint": float(stream.hints[t]) if self.hinted else None, "features": features}

    def loop(self, forecaster: sc.Forecaster, stream: Stream, start: int, stop: int) -> list[float]:
        values = []
        for t in range(start, stop):
            forecast = forecaster.predict(stream.x[t], **self.feed(stream, t))
            forecaster.update(forecast, stream.y[t])
            values.append(float(forecast))
        return values


LEARNING = sc.OnlineRegression(n_features=2)
SETTINGS: dict[str, Setting] = {
    **{f"{kind}, no hint": Setting(sc.Mean(), hypotheses_of(kind), {"horizon": 200}) for kind in CLASSES},
    **{f"{kind}, hints": Setting(sc.Mean(), hypotheses_of(kind), {"horizon": 200}, True) for kind in CLASSES},
    **{f"{kind}, learning": Setting(sc.Mean(), hypotheses_of(kind), {"bins": 6, "hint": LEARNING}) for kind in CLASSES},
    "learning on top of hints": Setting(sc.Expectile(0.8), sc.Finite(N), {"bins": 7, "hint": LEARNING}, True),
    "learning quantile, jitter": Setting(
        sc.Quantile(0.75), sc.Finite(N), {"bins": 7, "hint": LEARNING, "jitter": 0.1}, True
    ),
    "quantile, jitter": Setting(sc.Quantile(0.9), sc.Finite(N), {"bins": 5, "jitter": 1.0 / 64}),
    "linear quantile, jitter": Setting(sc.Quantile(0.2), sc.Linear(N), {"bins": 5, "jitter": 0.5}, True),
    "anytime": Setting(sc.Mean(), sc.Finite(N), {}),
    "moment": Setting(sc.Moment(3), sc.Finite(N), {"bins": 5, "levels": 3, "trust": 0.0}, True),
}
