"""A distribution through a few quantiles, and its score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swapcal.errors import InvalidInput

__all__ = ["Predictive"]


@dataclass(frozen=True, slots=True)
class Predictive:
    r"""The distribution whose distribution function is linear between the quantiles and jumps at the two outermost.

    All mass below the first level sits on the first value, and all mass above the last level on the last: nothing is
    claimed about tails that were not forecast.

    Parameters
    ----------
    levels, values : sequence of float
        In increasing order; values may repeat.

    Examples
    --------
    >>> half = Predictive([0.25, 0.5, 0.75], [1.0, 2.0, 4.0])
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
