"""What is forecast: several quantiles, or an interval, with all that the update will need."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from swapcal.engine.composite import CompositeForecast, perhaps, several
from swapcal.errors import InvalidInput
from swapcal.forecast import Forecast

# --------
# A distribution through a few quantiles, and its score.


@dataclass(frozen=True, slots=True)
class PredictiveDistribution:
    r"""The distribution whose distribution function is linear between the quantiles and jumps at the two outermost.

    All mass below the first level sits on the first value, and all mass above the last level on the last: nothing is
    claimed about tails that were not forecast.

    Parameters
    ----------
    levels, values : sequence of float
        In increasing order; values may repeat.

    Examples
    --------
    >>> half = PredictiveDistribution([0.25, 0.5, 0.75], [1.0, 2.0, 4.0])
    >>> half.cdf(3.0), half.quantile(0.5), half.quantile(0.9)
    (0.625, 2.0, 4.0)
    >>> round(half.crps(2.0), 4), round(half.crps(5.0), 4)
    (0.4375, 1.9375)
    """

    levels: Sequence[float]
    values: Sequence[float]

    def __post_init__(self) -> None:
        levels, values = np.asarray(self.levels, dtype=float), np.asarray(self.values, dtype=float)
        sound = levels.ndim == 1 and levels.shape == values.shape and len(levels) > 0
        if (
            not sound
            or levels[0] <= 0
            or levels[-1] >= 1
            or (np.diff(levels) <= 0).any()
            or (np.diff(values) < 0).any()
        ):
            raise InvalidInput(
                "a distribution needs levels strictly between 0 and 1 and as many values, both increasing; "
                f"got {list(self.levels)!r} and {list(self.values)!r}"
            )

    def cdf(self, y: float) -> float:
        """The forecast probability of an outcome of at most `y`."""
        if y < self.values[0]:
            return 0.0
        if y >= self.values[-1]:
            return 1.0
        k = int(np.searchsorted(self.values, y, side="right")) - 1
        low, high = self.values[k], self.values[k + 1]
        return float(self.levels[k] + (self.levels[k + 1] - self.levels[k]) * (y - low) / (high - low))

    def quantile(self, level: float) -> float:
        """The forecast quantile, between the given ones by interpolation."""
        return float(np.interp(level, self.levels, self.values))

    def crps(self, y: float) -> float:
        r"""The continuous ranked probability score :math:`\int (F(x) - 1\{x \ge y\})^2 dx`, exactly; lower is better.

        It is twice the pinball loss, averaged over all levels (Gneiting and Raftery 2007).
        """
        if not (math.isfinite(self.values[0]) and math.isfinite(self.values[-1])):
            return math.inf
        total = max(self.values[0] - y, 0.0) + max(y - self.values[-1], 0.0)
        for k in range(len(self.values) - 1):
            left, right = self.values[k], self.values[k + 1]
            if right == left:
                continue
            cut = min(max(y, left), right)
            middle = self.levels[k] + (self.levels[k + 1] - self.levels[k]) * (cut - left) / (right - left)
            total += (cut - left) * _squares(self.levels[k], middle)
            total += (right - cut) * _squares(1.0 - middle, 1.0 - self.levels[k + 1])
        return float(total)


def _squares(a: float, b: float) -> float:
    """The mean of the square of what goes from a to b in a straight line."""
    return (a * a + a * b + b * b) / 3.0


@dataclass(frozen=True, slots=True)
class QuantilesForecast(CompositeForecast):
    """Quantiles at several levels, in increasing order.

    Attributes
    ----------
    levels, values : tuple of float
        `values[k]` is the quantile at `levels[k]`; infinite while nothing is known of the outcomes' size.
    center, scale : float
        The map to (0, 1) that was in force: see `quantiles.unit`.
    parts : tuple of Forecast
        What the forecasters of the tree played, in the order of the levels; empty at the very start.
    size : Forecast or None
        What the forecaster of the scale played.
    unit : float
        What the scale is a multiple of, where `predict` was given one; else 1.
    round : int
        Its number among all that were forecast, from 0.
    """

    stored: ClassVar = {
        "levels": several(float),
        "values": several(float),
        "center": perhaps(float),
        "scale": float,
        "parts": several(Forecast.from_dict),
        "size": perhaps(Forecast.from_dict),
        "unit": float,
        "round": int,
    }

    levels: tuple[float, ...]
    values: tuple[float, ...]
    center: float | None
    scale: float
    parts: tuple[Forecast, ...]
    size: Forecast | None
    unit: float = 1.0
    round: int = -1

    @property
    def predictive(self) -> PredictiveDistribution:
        """The distribution through these quantiles."""
        return PredictiveDistribution(self.levels, self.values)


@dataclass(frozen=True, slots=True)
class IntervalForecast(QuantilesForecast):
    """An interval that is to cover the outcome, `lower <= y <= upper`: two quantiles."""

    @property
    def lower(self) -> float:
        """The lower end; infinite while nothing is known of the outcomes' size."""
        return self.values[0]

    @property
    def upper(self) -> float:
        """The upper end."""
        return self.values[1]

    @property
    def coverage(self) -> float:
        """The share of outcomes that is to be covered."""
        return 1.0 - 2.0 * self.levels[0]

    @property
    def width(self) -> float:
        """How far the ends lie apart."""
        return self.upper - self.lower

    def __contains__(self, y: object) -> bool:
        return isinstance(y, (int, float)) and self.lower <= y <= self.upper
