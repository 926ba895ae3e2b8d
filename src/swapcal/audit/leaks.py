"""Columns that give the outcome away: what is known from them could not have been known when the forecast was made."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swapcal.audit.discovery_columns import Column
from swapcal.typing import Float64Array, IntArray

__all__ = ["Leak", "find_leaks"]

SHRINKAGE = 50.0
FEWEST_ROWS = 50
LEAK = 0.5
"""A column from whose values this share of the mean square of V is known is a leak. Bias, however bad, is far below."""

LEAK_OF_VALUE = 0.9
"""The same for a single value, among its own rows, if V is large there: "status=closed" where all outcomes are 1."""


class Leak(NamedTuple):
    """A column, or one value of it, that gives the outcome away: `share` of the mean square of V is known from it."""

    name: str
    share: float


def find_leaks(
    columns: Sequence[Column], v: Float64Array, w: Float64Array, first: IntArray, second: IntArray
) -> tuple[Leak, ...]:
    """Columns, and single values, from which most of V is known on rows that were not looked at."""
    leaks = []
    wv, wvv = w * v, w * v * v
    overall = float(wvv[second].sum()) / max(float(w[second].sum()), np.finfo(np.float64).tiny)
    for column in columns:
        width = len(column.labels) + 1
        size, total = (np.bincount(column.codes[first] + 1, x[first], width) for x in (w, wv))
        means = total / (size + SHRINKAGE)
        means[0] = 0.0
        size, total, squares = (np.bincount(column.codes[second] + 1, x[second], width) for x in (w, wv, wvv))
        known = 2.0 * means * total - means**2 * size  # squares that are gone when the means are subtracted
        share = float(known.sum() / squares.sum()) if squares.sum() > 0 else 0.0
        if share >= LEAK:
            leaks.append(Leak(column.name, share))
            continue
        for code in range(1, width):
            big = size[code] >= FEWEST_ROWS and (total[code] / size[code]) ** 2 >= overall / 4
            if big and known[code] >= LEAK_OF_VALUE * squares[code]:
                leaks.append(Leak(column.labels[code - 1], float(known[code] / squares[code])))
    return tuple(sorted(leaks, key=lambda leak: -leak.share))
