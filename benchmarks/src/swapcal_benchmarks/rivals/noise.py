"""The noise of real labels: symmetric laws on [-1, 1] whose quantile function is known."""

from collections.abc import Callable

import numpy as np

from swapcal.protocols import Elicitable
from swapcal.typing import Float64Array

__all__ = ["heavy", "triangular", "unit"]

_CORE, _TAIL = 0.05, 1.2
_NODES = 20_001


def triangular(u: Float64Array) -> Float64Array:
    """Quantile function of the density 1 - |e|."""
    low: Float64Array = np.sqrt(2.0 * np.minimum(u, 0.5)) - 1.0
    high: Float64Array = 1.0 - np.sqrt(2.0 * np.minimum(1.0 - u, 0.5))
    return np.where(u < 0.5, low, high)


def heavy(u: Float64Array) -> Float64Array:
    """Quantile function of a law with P(|e| > z) ~ (1 + 20 z)^-1.2, cut off at 1: half of it lies within 0.04.

    Cutting the law and not the label keeps labels in their range without heaping them on its ends.
    """
    v = np.abs(2.0 * u - 1.0)
    cut = 1.0 - (1.0 + 1.0 / _CORE) ** -_TAIL
    size = _CORE * ((1.0 - v * cut) ** (-1.0 / _TAIL) - 1.0)
    signed: Float64Array = np.sign(2.0 * u - 1.0) * np.minimum(size, 1.0)
    return signed


def unit(property: Elicitable, law: Callable[[Float64Array], Float64Array]) -> float:
    """The property of the noise itself; right for properties on [0, 1] that move and stretch with their labels.

    Means, quantiles and expectiles do: the property of m + s e is m + s unit.

    Examples
    --------
    >>> from swapcal.properties import Mean, Quantile
    >>> round(unit(Quantile(0.9), triangular), 3), abs(round(unit(Mean(), heavy), 6))
    (0.553, 0.0)
    """
    sample = law((np.arange(_NODES) + 0.5) / _NODES)
    return 2.0 * property.value(0.5 + 0.5 * sample) - 1.0
