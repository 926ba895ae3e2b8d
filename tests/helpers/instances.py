"""The objects on which every check of their kind runs; a new class adds a line here."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from swapcal.forecaster import Forecaster
from swapcal.hints import OnlineRegression
from swapcal.hypotheses import Finite, Linear, Oracle
from swapcal.learners import GradientDescent, Learner, MultiplicativeWeights
from swapcal.potentials import AdaNormalHedge, Exponential, PNorm, Potential, Quadratic, Squint
from swapcal.properties import (
    Concave,
    Expectile,
    Log,
    Mean,
    Median,
    Moment,
    Probability,
    Property,
    Quantile,
    Spherical,
    Squared,
    Tsallis,
)
from swapcal.protocols import Elicitable, Hypotheses, LearningHint, Row
from swapcal.typing import Float64Array


def entropy(p: float) -> float:
    """Numbers only: arrays make `if` fail."""
    return -p * math.log(p) - (1.0 - p) * math.log(1.0 - p) if 0.0 < p < 1.0 else 0.0


def entropy_slope(p: float) -> float:
    if p in (0.0, 1.0):
        return math.inf if p == 0.0 else -math.inf
    return math.log((1.0 - p) / p)


def huber(p: float, y: float) -> float:
    return max(-0.2, min(p - y, 0.2))


def huber_loss(p: float, y: float) -> float:
    error = abs(p - y)
    return 0.5 * error * error if error <= 0.2 else 0.2 * (error - 0.1)


def wide(p: Float64Array, y: Float64Array) -> Float64Array:
    """Leaves [-1, 1], and is not symmetric."""
    return 3.0 * (p - y) + np.maximum(p - y, 0.0)


def quartic(p: Float64Array, y: Float64Array) -> Float64Array:
    """Products, as powers of arrays and of numbers round differently."""
    square = (p - y) * (p - y)
    return square * square


PROPERTIES: list[Elicitable] = [
    Mean(),
    Mean(low=-1.0, high=1.0),
    Mean(low=100.0, high=350.0),
    Moment(1),
    Moment(2),
    Moment(2, low=-1.0, high=2.0),
    Moment(2, low=-3.0, high=-1.0),
    Moment(3, low=-1.0, high=0.5),
    Moment(6, low=-0.5, high=0.5),
    Median(),
    Quantile(0.1),
    Quantile(0.9, low=-10.0, high=20.0, density=3.0),
    Expectile(0.5),
    Expectile(0.2),
    Expectile(0.95, low=-5.0, high=5.0),
    Probability(),
    Probability(Squared()),
    Probability(Log()),
    Probability(Spherical()),
    Probability(Tsallis(1.5)),
    Probability(Tsallis(2.0)),
    Probability(Tsallis(3.5)),
    Probability(Concave(lambda p: p * (1.0 - p), lambda p: 1.0 - 2.0 * p, name="Brier")),
    Probability(Concave(entropy, entropy_slope, name="entropy", curvature=lambda p: 1.0 / (p * (1.0 - p)))),
    Property(huber, loss=huber_loss, lipschitz=1.0),
    Property(wide, low=-2.0, high=1.0, lipschitz=12.0),
    Property(loss=quartic),
    Property(Expectile(0.7).identification, loss=Expectile(0.7).loss, name="expectile"),
]

REBUILDABLE: list[Elicitable] = [
    each
    for each in PROPERTIES
    if not isinstance(each, Property) and not (isinstance(each, Probability) and isinstance(each.proper_loss, Concave))
]

POTENTIALS: list[Potential] = [
    AdaNormalHedge(), Exponential(), Exponential(n_rates=4), Squint(), PNorm(), PNorm(p=3.5), PNorm(p=20.0),
]  # fmt: skip

HYPOTHESES: list[Hypotheses] = [
    Finite(1), Finite(3), Finite(2, names=["all", "new customers"]), Finite(40),
    *(Finite(6, potential=potential) for potential in POTENTIALS[1:]), Linear(1), Linear(4), Linear(4, radius=0.5),
    Linear(30, radius=10.0), Linear(3, potential=Quadratic()), Linear(3, potential=Exponential()),
]  # fmt: skip


class Sound:
    """A learner of a user's own: follow the regularized leader in the plane, with a regret of at most 1.5 sqrt(n)."""

    n: Any = 2
    odd: Any = True

    def __repr__(self) -> str:
        return "Sound()"

    def start(self) -> Any:
        return np.zeros(3)

    def predict(self, state: Float64Array, row: Row) -> float:
        length = max(float(np.linalg.norm(state[:-1])), math.sqrt(state[-1]), 1.0)
        return float(state[row.indices] @ row.values) / length

    def update(self, state: Float64Array, row: Row, kappa: float) -> None:
        state[row.indices] += kappa * row.values
        state[-1] += 1.0

    def regret(self, n_rounds: Float64Array) -> Float64Array:
        return np.asarray(1.5 * np.sqrt(n_rounds))

    def supremum(self, state: Float64Array) -> float:
        return float(np.linalg.norm(state[:-1]))

    def dump(self, state: Float64Array) -> bytes:
        return state.tobytes()

    def load(self, data: bytes) -> Float64Array:
        return np.frombuffer(data).copy()

    def spec(self) -> Any:
        return {"kind": "Sound"}


LEARNERS: list[Learner] = [GradientDescent(1), GradientDescent(4), MultiplicativeWeights(1), MultiplicativeWeights(5)]

HINTS: list[LearningHint] = [
    OnlineRegression(),
    OnlineRegression(n_features=3),
    OnlineRegression(most_full=1),
    OnlineRegression(n_features=1, most_full=3),
]

OWN = Property(huber, loss=huber_loss, lipschitz=1.0)

FORECASTERS: dict[str, Callable[[], Any]] = {
    "mean of groups": lambda: Forecaster(Mean(), Finite(3), horizon=3000, seed=1),
    "anytime quantile": lambda: Forecaster(Quantile(0.9, low=-10.0, high=20.0), Finite(4), seed=2),
    "r below 2, odd bins": lambda: Forecaster(Median(), Finite(2), bins=7, r=1.0, seed=3),
    "one bin": lambda: Forecaster(Mean(), Finite(2), bins=1),
    "expectile of linear functions": lambda: Forecaster(Expectile(0.2), Linear(5), horizon=3000, seed=4),
    "anytime linear": lambda: Forecaster(Mean(low=100.0, high=350.0), Linear(2), r=3.0, seed=5),
    "probability, exponential": lambda: Forecaster(
        Probability(Log()), Finite(3, potential=Exponential()), horizon=3000, seed=6
    ),
    "squint, trusting": lambda: Forecaster(Mean(), Finite(3, potential=Squint()), horizon=500, trust=0.5, seed=7),
    "p-norm": lambda: Forecaster(Moment(2, low=-1.0, high=2.0), Finite(8, potential=PNorm()), horizon=3000, seed=8),
    "no levels, no trust": lambda: Forecaster(Mean(), Finite(3), horizon=3000, levels=0, trust=0.0, seed=9),
    "jitter": lambda: Forecaster(Quantile(0.3), Finite(2), horizon=3000, jitter=0.05, outside="clip", seed=10),
    "regression": lambda: Forecaster(Mean(), Finite(3), horizon=3000, hint=OnlineRegression(), seed=11),
    "regression on features": lambda: Forecaster(
        Quantile(0.8), Linear(3), hint=OnlineRegression(n_features=2), max_pending=300, seed=12
    ),
    "own property": lambda: Forecaster(OWN, Finite(2), horizon=3000, seed=13),
    "oracle": lambda: Forecaster(Mean(), Oracle(GradientDescent(3)), horizon=3000, seed=14),
    "many functions": lambda: Forecaster(Mean(), Finite(200), horizon=3000, seed=2**70),
}

LOADERS: dict[str, Callable[[Any], Any]] = {
    "own property": lambda file: Forecaster.load(file, property=OWN),
}
"""For forecasters with parts that a state file does not hold."""
