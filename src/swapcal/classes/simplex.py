"""Numbers that nearly add up to 1 as a probability vector."""

from typing import Any

import numpy as np

from swapcal.typing import Float64Array

__all__ = ["projected", "shared_out"]


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


def shared_out(p: Any) -> Float64Array:
    """Numbers in [0, 1], with what they lack to 1, or have beyond it, shared out among them.

    In equal shares where that moves no number by more than half of itself: then it is `projected`. Otherwise in
    proportion to p (1 - p), what is uncertain about each, so that a rare class keeps about its probability, and none
    that may come up gets 0. Where even that would leave one below 0, all are divided by their sum.

    Examples
    --------
    >>> shared_out([0.5, 0.3, 0.3]).round(3), shared_out([0.6, 0.5, 0.001]).round(4)
    (array([0.467, 0.267, 0.267]), array([0.5506, 0.4486, 0.0008]))
    >>> shared_out([1.0, 1.0, 0.0]), shared_out([0.0, 0.0])
    (array([0.5, 0.5, 0. ]), array([0.5, 0.5]))
    """
    raw = np.asarray(p, dtype=np.float64)
    total = float(raw.sum())
    even = (1.0 - total) / len(raw)
    if abs(even) <= 0.5 * float(raw.min()):
        return np.asarray(raw + even)
    spread = raw * (1.0 - raw)
    if spread.any():
        moved = raw + (1.0 - total) * spread / spread.sum()
        if moved.min() >= 0.0:
            return np.asarray(moved)
    return raw / total if total > 0.0 else np.full(len(raw), 1.0 / len(raw))
