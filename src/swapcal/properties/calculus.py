"""Derivatives, roots and integrals of functions of which only values are known."""

from collections.abc import Callable

import numpy as np

from swapcal.typing import Float64Array, FloatLike

__all__ = ["integral", "root", "slope"]

_STEP = 2.0**-17
"""Step of a difference, in widths of the interval: near the cube root of the rounding unit, where the error of cutting
the Taylor series off (step squared) and that of rounding (unit / step) are of the same size, 1e-10."""

_HALVINGS = 64
"""Enough to bring any interval down to the spacing of the floats at its ends."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
"""Gauss and Legendre's rule, exact for polynomials; a kink costs it about 1e-5 of the interval."""


def slope(function: Callable[[FloatLike], FloatLike], p: FloatLike, low: float, high: float) -> FloatLike:
    """The derivative of `function` at `p`, from values inside [low, high] only.

    It is that of the parabola through three points a step apart: the central difference, except within a step of an
    end, where the points stay inside and the parabola's curvature carries the derivative over to `p`.
    """
    step = _STEP * (high - low)
    center: FloatLike
    if isinstance(p, np.ndarray):
        center = np.clip(p, low + step, high - step)
        shifted = bool((center != p).any())
    else:
        center = min(max(p, low + step), high - step)
        shifted = center != p
    left, right = function(center - step), function(center + step)
    central = (right - left) / (2.0 * step)
    if not shifted:
        return central
    return central + (p - center) * (right - 2.0 * function(center) + left) / (step * step)


def root(function: Callable[[Float64Array], Float64Array], low: Float64Array, high: float) -> Float64Array:
    """Where `function` gets from negative to non-negative, by bisection, elementwise.

    The function must not be negative at `high`. The result is the right end of the last bracket, so at a jump it is the
    first point of the upper side; it is `low` where the function is not negative there.
    """
    left, right = low, np.where(function(low) >= 0.0, low, high)
    for _ in range(_HALVINGS):
        middle = left + 0.5 * (right - left)
        up = function(middle) >= 0.0
        left, right = np.where(up, left, middle), np.where(up, middle, right)
    return right


def integral(function: Callable[[Float64Array], Float64Array], start: Float64Array, end: Float64Array) -> Float64Array:
    """The integral of `function` from `start` to `end`, elementwise, for a function smooth in between."""
    half = 0.5 * (end - start)
    total = np.zeros_like(half)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * function(start + half * (1.0 + node))
    return half * total
