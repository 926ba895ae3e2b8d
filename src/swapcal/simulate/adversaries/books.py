"""What an adversary knows of the past: for each value that was forecast, how often, and how badly for whom."""

from typing import Protocol

import numpy as np

from swapcal.roles import Elicitable
from swapcal.typing import Float64Array

__all__ = ["Books", "Scored"]


class Scored(Protocol):
    """The part of a hypothesis class that turns sums into errors."""

    @property
    def dual(self) -> str:
        """The norm that the supremum is: "max" or "euclidean"."""

    def supremum(self, sums: Float64Array) -> Float64Array:
        """The largest |sum_t f(x_t) v_t| over f."""


class Books:
    """Per forecast value: visits n, the vector S of sums of x V(forecast, y), and the error sup_f S_f^2 / n.

    The adversary keeps them itself, from forecasts and outcomes, so that they exist for any forecaster. A round costs
    O(n) for the vector and O(number of values) for `worst`.

    Parameters
    ----------
    property : Elicitable
        Whose identification function is summed.
    hypotheses : Scored
        What turns sums into errors: a class of functions.
    n : int
        Length of a context.

    Examples
    --------
    >>> from swapcal import Finite, Mean
    >>> books = Books(Mean(), Finite(2), 2)
    >>> books.record(0.5, np.array([1.0, 0.0]), 1.0)
    >>> books.record(0.5, np.array([1.0, 1.0]), 1.0)
    >>> books.values, books.sums[0], books.error()
    ([0.5], array([-1. , -0.5]), 0.5)
    """

    __slots__ = ("counts", "errors", "hypotheses", "places", "property", "sums", "values")

    def __init__(self, property: Elicitable, hypotheses: Scored, n: int) -> None:
        self.property = property
        self.hypotheses = hypotheses
        self.places: dict[float, int] = {}
        self.values: list[float] = []
        self.sums = np.zeros((64, n))
        self.counts = np.zeros(64)
        self.errors = np.zeros(64)

    def place(self, value: float) -> int:
        """The row that belongs to a forecast value; a new value gets a new one."""
        if value in self.places:
            return self.places[value]
        i = self.places[value] = len(self.values)
        self.values.append(value)
        if i == len(self.counts):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
            self.errors = np.concatenate([self.errors, np.zeros_like(self.errors)])
        return i

    def record(self, value: float, x: Float64Array, y: float) -> None:
        """Enter a round."""
        i = self.place(value)
        self.sums[i] += x * self.property.identification(value, y)
        self.counts[i] += 1.0
        self.errors[i] = float(self.hypotheses.supremum(self.sums[i])) ** 2 / self.counts[i]

    def worst(self) -> int:
        """The row with the largest error; 0 before the first round."""
        return int(self.errors.argmax())

    def location(self, share: float) -> float:
        """The place in the label range that lies `share` of the way up, moved to the end if it is outside."""
        low, high = self.property.low, self.property.high
        return min(max(low + share * (high - low), low), high)

    def share(self, value: float) -> float:
        """How far up the domain a forecast lies."""
        low, high = self.property.domain
        return (value - low) / (high - low)

    def error(self) -> float:
        """The swap multicalibration error so far, with r = 2."""
        return float(np.sum(self.errors))
