"""How the users of MsMwC find a forecast that no label can exploit: a simulated game, or its two-point solution.

For weights w over the experts (f, i, sigma), Phi(p) is constant on each bin, and a distribution P of forecasts in
[0, 1] is wanted with E Phi(p) (p - y) small for every y.
"""

from typing import NamedTuple

import numpy as np

from swapcal.paper.two_points import two_points
from swapcal.typing import Float64Array

__all__ = ["Spots", "simulated", "two_spots"]


class Spots(NamedTuple):
    """Forecasts in [0, 1], their bins, and their probabilities."""

    points: list[float]
    bins: list[int]
    probabilities: list[float]


def two_spots(phi: Float64Array, horizon: int) -> Spots:
    """Two neighbors on the grid 0, 1/T, ..., 1 at the lowest change of sign: at most 1/T for every label."""
    n_bins = len(phi)
    support = two_points(phi, horizon)
    bins = [min(j * n_bins // horizon, n_bins - 1) for j, _ in support]
    return Spots([j / horizon for j, _ in support], bins, [probability for _, probability in support])


def simulated(phi: Float64Array, n_steps: int) -> Spots:
    r"""All points of a game of `n_steps` steps between a label that learns and a forecast that copies it.

    The label follows its gradient, y <- y - Phi(y) / (G sqrt(k)) in step k, cut to [0, 1], with G = max |Phi|; the
    forecast is the label's last value, so that the game is even in every step. As gradient ascent has a regret of at
    most 1.5 G sqrt(n), E Phi(p) (p - y) <= 1.5 G / sqrt(n) for every y when p is drawn from the points.

    Examples
    --------
    >>> phi = np.array([-0.2, -0.2, 0.1, 0.3])
    >>> spots = simulated(phi, 100)
    >>> payoffs = [np.mean(phi[spots.bins] * (np.array(spots.points) - y)) for y in (0.0, 1.0)]
    >>> len(spots.points), bool(max(payoffs) <= 1.5 * 0.3 / 10)
    (100, True)
    """
    n_bins = len(phi)
    largest = float(np.abs(phi).max())
    slopes = (phi / largest).tolist() if largest > 0.0 else [0.0] * n_bins
    points, bins, point, last = [], [], 0.5, n_bins - 1
    for step in (1.0 / np.sqrt(np.arange(1, n_steps + 1))).tolist():
        i = int(point * n_bins) if point < 1.0 else last
        points.append(point)
        bins.append(i)
        point -= slopes[i] * step
        # min and max would take half of the game's time.
        if point < 0.0:
            point = 0.0
        elif point > 1.0:
            point = 1.0
    return Spots(points, bins, [1.0 / n_steps] * n_steps)
