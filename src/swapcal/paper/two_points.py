"""Line 4 of the paper's Algorithm 1 (line 5 of Algorithm 2): the distribution P_t on the grid {0, 1/T, ..., 1}."""

import numpy as np

from swapcal.errors import InvalidInput
from swapcal.typing import Float64Array

__all__ = ["Support", "two_points"]

Support = tuple[tuple[int, float], ...]
"""Pairs (j, P_t(j/T)) with positive probability, at most two."""


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
