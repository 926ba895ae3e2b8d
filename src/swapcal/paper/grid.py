"""Line 4 of the paper's Algorithm 1 (line 5 of Algorithm 2): the distribution P_t on the grid {0, 1/T, ..., 1}."""

import math
from dataclasses import dataclass

import numpy as np

from swapcal import inputs
from swapcal.errors import InvalidInput
from swapcal.paper.msmwc import checked_whole
from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

# --------
# The paper's two grids: the points 0, 1/T, ..., 1 that are drawn from, and the bins I_1, ..., I_N to forecast.


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
    horizon = checked_whole(horizon, "horizon")  # beyond 10^15 j/T and 1/(dT) lose their last places
    r = inputs.number(r, "r", 1.0, 100.0)
    default = max(1, math.ceil(math.pow(horizon, 1.0 / (max(r, 2.0) + 1.0)) - 1e-9))
    n_bins = min(default if bins is None else inputs.integer(bins, "bins", 1), horizon)
    return TGrid(*property.domain, n_bins, horizon, inputs.one_of(forecasts, "forecasts", ("right", "middle")))


# Pairs (j, P_t(j/T)) with positive probability, at most two.
Support = tuple[tuple[int, float], ...]


def two_points(phi: Float64Array, horizon: int) -> Support:
    """P_t from the values of Phi_t on the N bins.

    Phi_t is constant on each bin, so it can change sign on the T-grid only at the first point of a bin; N numbers are
    looked at, never T. To the letter: 0 if Phi_t(0) > 0; else 1 if Phi_t(1) <= 0; else the lowest i with
    Phi_t(i/T) Phi_t((i+1)/T) <= 0. Where both factors are zero the paper's formula reads 0/0; all mass then goes to
    the lower of the two points, where the weighted gain is zero for every label. At t = 1 all weights are equal, Phi_t
    is zero everywhere, and the second case makes the first forecast 1.

    Examples
    --------
    >>> two_points(np.array([-0.3, -0.1, 0.1, 0.2]), horizon=100)
    ((49, 0.5), (50, 0.5))
    >>> two_points(np.zeros(4), horizon=100)
    ((100, 1.0),)
    """
    n_bins = len(phi)
    if not np.isfinite(phi).all():
        raise InvalidInput(f"Phi must be finite on every bin; got {phi}: look at the weights of the expert algorithm")
    if phi[0] > 0.0:
        return ((0, 1.0),)
    if phi[-1] <= 0.0:
        return ((horizon, 1.0),)
    k = int(np.argmax(phi >= 0.0))  # exists, as Phi_t(1) > 0
    first = -(-k * horizon // n_bins)
    if phi[k] == 0.0:  # then P_t(i/T) = 0 or, for k = 0, the case 0/0
        return ((first, 1.0),)
    below, above = float(abs(phi[k - 1])), float(phi[k])
    return ((first - 1, above / (below + above)), (first, below / (below + above)))
