"""The objects on which every check of their kind runs; a new class adds a line here."""

import math

import numpy as np

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
from swapcal.roles import Elicitable
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
