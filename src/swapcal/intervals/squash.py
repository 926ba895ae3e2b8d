"""Outcomes of any size as numbers in [0, 1]: a fixed, increasing map around a center, in units of a scale."""

import math

__all__ = ["FAR", "size", "size_back", "unit", "unit_back"]

FAR = 25.0
"""So many scales from the center the map ends: outcomes beyond count as there, and no quantile lies beyond."""
_ENDS = FAR / (1.0 + FAR)


def unit(y: float, center: float, scale: float) -> float:
    """1/2 at the center, about 1/4 and 3/4 one scale away, 0 and 1 at `FAR` scales; increasing up to there.

    Examples
    --------
    >>> unit(3.0, 3.0, 2.0), round(unit(5.0, 3.0, 2.0), 2), round(unit_back(1.0, 3.0, 2.0), 9)
    (0.5, 0.76, 53.0)
    """
    z = (y - center) / scale
    if abs(z) >= FAR:
        return 1.0 if z > 0 else 0.0
    return 0.5 + 0.5 / _ENDS * z / (1.0 + abs(z))


def unit_back(u: float, center: float, scale: float) -> float:
    """The outcome at position `u`."""
    v = _ENDS * (2.0 * u - 1.0)
    return center + scale * v / (1.0 - abs(v))


def size(distance: float, typical: float) -> float:
    """A distance, 0 or more, as a number in [0, 1): 1/2 at the typical one."""
    ratio = distance / typical
    return 1.0 if math.isinf(ratio) else ratio / (1.0 + ratio)


def size_back(u: float, typical: float) -> float:
    """The distance of size `u`, from a hundredth to a hundred times the typical one."""
    u = min(max(u, 0.01), 0.99)
    return typical * u / (1.0 - u)
