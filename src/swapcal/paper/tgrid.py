"""The paper's two grids: the points 0, 1/T, ..., 1 that are drawn from, and the bins I_1, ..., I_N to forecast."""

import math
from dataclasses import dataclass

from swapcal import checked
from swapcal.errors import InvalidInput
from swapcal.roles import Elicitable

__all__ = ["TGrid", "grid_for"]

_LONGEST = 10**15
"""Beyond it j/T and 1/(dT) lose their last places."""


@dataclass(frozen=True, slots=True)
class TGrid:
    """T-grid and bins over an interval [low, high]; bins are numbered from 0, one less than in the paper.

    Examples
    --------
    >>> grid = TGrid(0.0, 1.0, n_bins=4, horizon=100, forecasts="right")
    >>> grid.bin(49), grid.bin(50), grid.point(50), grid.forecast(2)
    (1, 2, 0.5, 0.75)
    """

    low: float
    high: float
    n_bins: int
    horizon: int
    forecasts: str

    def bin(self, j: int) -> int:
        """The i with j/T in I_i; in whole numbers, so that no border is rounded to the wrong side."""
        return min(j * self.n_bins // self.horizon, self.n_bins - 1)

    def point(self, j: int) -> float:
        """j/T in the property's units."""
        return self.low + (self.high - self.low) * (j / self.horizon)

    def forecast(self, i: int) -> float:
        """The value that bin i forecasts: its right end z_i = i/N, or its mid-point."""
        return self.low + (self.high - self.low) * ((i + (1.0 if self.forecasts == "right" else 0.5)) / self.n_bins)


def grid_for(property: Elicitable, horizon: int, r: float, bins: int | None, forecasts: str) -> TGrid:
    """The grids of a run, N = ceil(T^(1/(r+1))) unless `bins` says otherwise.

    For r < 2 the N is that of r = 2, from which the paper derives its bound by Hoelder's inequality. N is never above
    T: a bin without a point of the T-grid could not be drawn.
    """
    horizon = checked.whole(horizon, "horizon", 1)
    if horizon > _LONGEST:
        raise InvalidInput(f"horizon must be at most 10^15; got {checked.shown(horizon)}")
    r = checked.number(r, "r", 1.0, 100.0)
    default = max(1, math.ceil(math.pow(horizon, 1.0 / (max(r, 2.0) + 1.0)) - 1e-9))
    n_bins = min(default if bins is None else checked.whole(bins, "bins", 1), horizon)
    return TGrid(*property.domain, n_bins, horizon, checked.one_of(forecasts, "forecasts", ("right", "middle")))
