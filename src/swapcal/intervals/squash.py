"""Outcomes of any size as numbers in (0, 1): a fixed, increasing map around a center, in units of a scale."""

import math

__all__ = ["EDGE", "size", "size_back", "unit", "unit_back"]

EDGE = 1e-9
"""Positions stay this far from 0 and 1, whose counterparts are infinite."""


def unit(y: float, center: float, scale: float) -> float:
    """1/2 at the center, 1/4 and 3/4 one scale away; strictly increasing, so it keeps every comparison.

    Examples
    --------
    >>> unit(3.0, 3.0, 2.0), unit(5.0, 3.0, 2.0), unit_back(0.75, 3.0, 2.0)
    (0.5, 0.75, 5.0)
    """
    z = (y - center) / scale
    if math.isinf(z):
        return 1.0 if z > 0 else 0.0
    return 0.5 + 0.5 * z / (1.0 + abs(z))


def unit_back(u: float, center: float, scale: float) -> float:
    """The outcome at position `u`."""
    v = 2.0 * min(max(u, EDGE), 1.0 - EDGE) - 1.0
    return center + scale * v / (1.0 - abs(v))


def size(distance: float, typical: float) -> float:
    """A distance, 0 or more, as a number in [0, 1): 1/2 at the typical one."""
    ratio = distance / typical
    return 1.0 if math.isinf(ratio) else ratio / (1.0 + ratio)


def size_back(u: float, typical: float) -> float:
    """The distance of size `u`, from a hundredth to a hundred times the typical one."""
    u = min(max(u, 0.01), 0.99)
    return typical * u / (1.0 - u)
