"""Methods without a grid, put on one: an adversary can only aim at forecasts that are made more than once."""

import math
from dataclasses import replace
from typing import Any

from swapcal.engine.values import Grid
from swapcal.forecast import Forecast
from swapcal.typing import Float64Array
from swapcal_benchmarks.rivals.contestants import Entry

__all__ = ["Rounded"]


class Rounded:
    """Says the mid-point of the bin in which a method's forecast lies; the method itself learns as it always does.

    The bins are the clairvoyant's, ceil(T^(1/3)) of them: those to which the scores of such methods are rounded anyway.
    """

    def __init__(self, inner: Entry, horizon: int) -> None:
        self.inner = inner
        self.property = inner.property
        self.hypotheses = inner.hypotheses
        self.grid = Grid(*inner.property.domain, math.ceil(horizon ** (1.0 / 3.0) - 1e-9))
        self.waiting: dict[int, Forecast] = {}

    def predict(self, x: Any, hint: float | None = None) -> Forecast:
        """The method's forecast, rounded."""
        forecast = self.inner.predict(x, hint)
        self.waiting[forecast.round] = forecast
        value, other = (self.grid.midpoint(self.grid.bin(each)) for each in (forecast.value, forecast.other))
        return replace(forecast, value=value, other=other)

    def update(self, forecast: Forecast, y: float) -> None:
        """The outcome, for the forecast as the method made it."""
        self.inner.update(self.waiting.pop(forecast.round), y)

    def run(self, X: Any, y: Any, hints: Any = None) -> Float64Array:
        """A whole recorded stream, rounded."""
        return self.grid.round(self.inner.run(X, y, hints))
