"""The nearest probability vector."""

from typing import Any

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["projected"]


def projected(p: Any) -> Float64Array:
    """The probability vector nearest to `p`: every entry moves by the same amount, and what falls below 0 becomes 0.

    No outcome is further away afterwards: for every probability vector y, |projected(p) - y| <= |p - y|, as the simplex
    is convex; so the Brier score of every single round is at most that of the raw numbers. Cost: O(K log K).

    Examples
    --------
    >>> projected([0.5, 0.4, 0.4]).round(3), projected([0.9, 0.3, -0.4])
    (array([0.4, 0.3, 0.3]), array([0.8, 0.2, 0. ]))
    """
    raw = np.asarray(p, dtype=np.float64)
    descending = np.sort(raw)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(raw) + 1)
    kept = int(np.flatnonzero(descending > excess)[-1])
    nearest: Float64Array = np.maximum(raw - excess[kept], 0.0)
    return nearest
