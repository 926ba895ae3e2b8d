"""Games for the tests of guarantees and rates: who plays against whom, for what."""

from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.forecast import Forecast
from swapcal.forecaster import Forecaster
from swapcal.hypotheses import Finite, Linear
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Squint
from swapcal.properties import Expectile, Log, Mean, Moment, Probability, Quantile
from swapcal.protocols import Elicitable, Hypotheses, Row
from swapcal.simulate.adversaries import (
    Adversary,
    AntiHint,
    Arena,
    Far,
    Greedy,
    GroupTargeted,
    Sine,
    Sweep,
    ball,
    groups,
    signed,
)
from swapcal.typing import Float64Array

WIDTH = 0.2
"""Real labels are uniform on a fifth of the range, so that their density is at most 5 / range."""

SOUGHT: dict[str, tuple[Elicitable, float | None]] = {
    "mean": (Mean(), None),
    "mean-wide": (Mean(low=-20.0, high=60.0), None),
    "mean-real": (Mean(), WIDTH),
    "quantile": (Quantile(0.9, density=1.0 / WIDTH), WIDTH),
    "median": (Quantile(0.5, low=-1.0, high=3.0, density=1.0 / WIDTH), WIDTH),
    "expectile": (Expectile(0.8), WIDTH),
    "expectile-binary": (Expectile(0.8), None),
    "moment": (Moment(2), WIDTH),
    "probability": (Probability(Log()), None),
}
"""What is forecast, and the width of the labels' window; None for binary labels."""

CLASSES: dict[str, tuple[Hypotheses, Float64Array]] = {
    "one": (Finite(1), groups(1, seed=1)),
    "groups": (Finite(12), groups(12, seed=1)),
    "signed": (Finite(12), signed(12, seed=1)),
    "exponential": (Finite(6, potential=Exponential()), signed(6, seed=1)),
    "squint": (Finite(6, potential=Squint()), groups(6, seed=1)),
    "p-norm": (Finite(12, potential=PNorm()), signed(12, seed=1)),
    "linear": (Linear(5), ball(5, seed=1)),
}
"""For whom, and the contexts to choose from."""

POTENTIALS = (AdaNormalHedge(), Exponential(), Squint(), PNorm())

STRATEGIES: dict[str, Callable[[Arena, int], Adversary]] = {
    "greedy": lambda arena, n_rounds: Greedy(arena),
    "far": lambda arena, n_rounds: Far(arena),
    "group-targeted": lambda arena, n_rounds: GroupTargeted(arena),
    "sweep": lambda arena, n_rounds: Sweep(arena, period=n_rounds / 2),
    "sine": lambda arena, n_rounds: Sine(arena, period=n_rounds / 5),
    "anti-hint": lambda arena, n_rounds: AntiHint(arena),
}

Game = tuple[Forecaster, Adversary]


def game(
    sought: str, hypotheses: str, strategy: str, n_rounds: int, *, seed: int, hints: str | None = None, **settings: Any
) -> Game:
    """A new forecaster and its adversary; an adversary that contradicts hints gets some if none are asked for."""
    target, width = SOUGHT[sought]
    members, contexts = CLASSES[hypotheses]
    if strategy == "anti-hint" and hints is None:
        hints = "alternating"
    settings.setdefault("horizon", n_rounds)
    arena = Arena(contexts, width=width, hints=hints, seed=seed + 1000)
    return Forecaster(target, members, seed=seed, **settings), STRATEGIES[strategy](arena, n_rounds)


class Watched:
    """A forecaster with somebody who looks over its shoulder: `look(forecaster, forecast)` before each outcome."""

    def __init__(self, forecaster: Forecaster, look: Callable[[Forecaster, Forecast], None]) -> None:
        self.forecaster, self.look = forecaster, look
        self.property, self.hypotheses = forecaster.property, forecaster.hypotheses

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        forecast = self.forecaster.predict(x, hint)
        self.look(self.forecaster, forecast)
        return forecast

    def update(self, forecast: Forecast, y: float) -> None:
        self.forecaster.update(forecast, y)


def row_of(forecast: Forecast) -> Row:
    """The context that a forecast carries."""
    return Row(np.array(forecast.indices, dtype=np.int64), np.array(forecast.values, dtype=np.float64))


def branches(forecaster: Forecaster, forecast: Forecast) -> list[tuple[int, float]]:
    """Every outcome of the draw as (slot of the value, probability)."""
    return [
        (forecaster.state.values.find(value), probability)
        for value, probability in ((forecast.value, forecast.probability), (forecast.other, 1.0 - forecast.probability))
        if probability > 0.0
    ]


def evidence_of(property: Elicitable, forecast: Forecast, labels: Float64Array) -> Float64Array:
    """V where a forecast takes its evidence, for each label; at an end of the domain only the sign that heals counts.

    It is the same for both outcomes of a draw: a pair has one evidence point, and outright plays have one outcome.
    """
    v: Float64Array = np.asarray(property.identification(forecast.evidence_at, labels))
    if forecast.kind == "low":
        return np.minimum(v, 0.0)
    return np.maximum(v, 0.0) if forecast.kind == "high" else v


def every_label(property: Elicitable, points: Float64Array) -> Float64Array:
    """Labels over the whole range, both ends too, among them those just below, at and just above every point."""
    ends = np.array([property.low, property.high])
    if isinstance(property, Probability):
        return ends
    near = np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf), ends])
    return near[(near >= property.low) & (near <= property.high)]
